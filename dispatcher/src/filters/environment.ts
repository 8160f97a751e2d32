import { type ASTNode, Environment } from '@marcbachmann/cel-js';

/** A filter that cannot be compiled: why, and where (0-based offset into its text). */
export class Refusal extends Error {
  constructor(
    reason: string,
    readonly offset: number,
  ) {
    super(reason);
  }
}

const MAX_NODES = 2000;
const MAX_DEPTH = 64;

/** Only types are asked of the library: filters are evaluated by the closures of compile.ts. */
const typeOnly = () => false;

function createEnvironment(): Environment {
  const environment = new Environment({
    limits: {
      maxAstNodes: MAX_NODES,
      maxDepth: MAX_DEPTH,
      maxListElements: 1000,
      maxMapEntries: 200,
      maxCallArguments: 8,
    },
  })
    .registerVariable('tag', 'string')
    .registerVariable('key', 'string')
    .registerVariable('attrs', 'map<string, dyn>')
    .registerVariable('body', 'dyn')
    .registerFunction('exists(dyn): bool', typeOnly)
    .registerOperator('int == double', typeOnly)
    .registerOperator('int == uint', typeOnly)
    .registerOperator('uint == double', typeOnly);
  for (const operator of ['<', '<=', '>', '>=']) environment.registerOperator(`bytes ${operator} bytes`, typeOnly);
  for (const operator of ['+', '-', '*', '/']) {
    for (const whole of ['int', 'uint']) {
      environment.registerOperator(`${whole} ${operator} double: double`, typeOnly);
      environment.registerOperator(`double ${operator} ${whole}: double`, typeOnly);
    }
  }
  return environment;
}

const environment = createEnvironment();

/**
 * Syntax and types of a filter.
 * @throws Refusal
 */
export function parseFilter(text: string): ASTNode {
  try {
    const parsed = environment.parse(text);
    checkDepth(parsed.ast);
    const { valid, type, error } = parsed.check();
    if (!valid) throw error;
    if (type !== 'bool' && type?.startsWith('dyn') !== true) {
      throw new Refusal(`a filter must give bool, this one gives ${type}`, 0);
    }
    return parsed.ast;
  } catch (error) {
    throw toRefusal(error);
  }
}

function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof RangeError) return new Refusal('nested too deeply', 0);
  const { summary, message, node, range } = error as {
    summary?: string;
    message: string;
    node?: { pos?: number };
    range?: { start: number };
  };
  return new Refusal(summary ?? message, node?.pos ?? range?.start ?? 0);
}

/** The library and compile.ts recurse over the tree, so its depth is bounded first. Chains of && and || count once. */
function checkDepth(root: ASTNode): void {
  const open: { node: ASTNode; depth: number }[] = [{ node: root, depth: 0 }];
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    const { node, depth } = item;
    if (depth > MAX_DEPTH * 2) throw new Refusal(`nested deeper than ${MAX_DEPTH * 2}`, node.pos);
    const chained = node.op === '&&' || node.op === '||';
    for (const child of children(node)) {
      open.push({ node: child, depth: chained && child.op === node.op ? depth : depth + 1 });
    }
  }
}

/** The operands of a node as it was written: of a macro its arguments, not what it expands to. */
export function children(node: ASTNode): readonly ASTNode[] {
  switch (node.op) {
    case 'value':
    case 'id':
      return [];
    case '.':
    case '.?':
      return [node.args[0]];
    case 'call':
      return node.args[1];
    case 'rcall':
      return [node.args[1], ...node.args[2]];
    case 'map':
      return node.args.flat();
    case '!_':
    case '-_':
      return [node.args];
    default:
      return node.args;
  }
}

/** How many nodes a part of a filter has: the steps that evaluating it costs. */
export function countNodes(root: ASTNode): number {
  let count = 0;
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    count++;
    open.push(...children(node));
  }
  return count;
}
