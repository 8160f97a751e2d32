import { overflows } from '../service.js';
import {
  builtInReturnHandlers,
  builtInSendHandlers,
  drainDefault,
  lastPerKeyDefault,
  logLevelDefault,
  logLevels,
  queueOptionDefaults,
  serviceDefaults,
  sessionDefaults,
} from './input.js';
import { maxCode, maxQueueSize, maxSize, patterns } from './units.js';

/** Enough of JSON Schema for reading one; `title` completes "must be …" in messages. */
export interface Schema {
  readonly title?: string;
  readonly description?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly [keyword: string]: unknown;
}

const durationText = 'a duration such as "500ms", "5s", "2m" or "1h"';
const duration = (description: string, more: object = {}): Schema => ({
  title: `${durationText}, above zero`,
  description,
  type: 'string',
  pattern: patterns.duration,
  ...more,
});
const durationOrZero = (description: string, more: object = {}): Schema => ({
  title: `${durationText}; zero is "0s"`,
  description,
  type: 'string',
  pattern: patterns.durationOrZero,
  ...more,
});

const sizeText = 'a size such as "64KiB" or "4MiB", or a whole number of bytes';
const size = (description: string, more: object = {}, maximum = maxSize): Schema => ({
  title: sizeText,
  description,
  anyOf: [
    { title: sizeText, type: 'string', pattern: patterns.size },
    { title: sizeText, type: 'integer', minimum: 1, maximum },
  ],
  ...more,
});

const count = (description: string, maximum: number, more: object = {}): Schema => ({
  title: `a whole number from 1 to ${maximum}`,
  description,
  type: 'integer',
  minimum: 1,
  maximum,
  ...more,
});

const text = (title: string, description: string, more: object = {}): Schema => ({
  title,
  description,
  type: 'string',
  minLength: 1,
  ...more,
});

const object = (description: string, properties: Record<string, Schema>, more: object = {}): Schema => ({
  title: 'an object',
  description,
  type: 'object',
  additionalProperties: false,
  properties,
  ...more,
});

const list = (title: string, description: string, items: Schema, more: object = {}): Schema => ({
  title,
  description,
  type: 'array',
  minItems: 1,
  uniqueItems: true,
  items,
  ...more,
});

const billion = 1_000_000_000;
const d = serviceDefaults;

const limits = object('Bounds of one service; a request over one of them is REFUSED with LIMIT_EXCEEDED.', {
  maxStreams: count('Most streams (distinct requests) of the service at a time.', billion, {
    default: d.limits.maxStreams,
  }),
  maxSubscribers: count('Most subscribers of the service at a time.', billion, { default: d.limits.maxSubscribers }),
  maxParams: size('Most bytes of params in a request; less than session.maxMessage.', { default: d.limits.maxParams }),
  maxKept: size('Most bytes that one stream keeps for late joiners; over it the oldest are dropped.', {
    default: d.limits.maxKept,
  }),
});

const kept = { title: 'a whole number from 1 to 1000000', type: 'integer', minimum: 1, maximum: 1_000_000 };
const keepText = '"none", "last", "lastPerKey", {"lastPerKey": NUMBER} or {"ring": NUMBER}';
const keep: Schema = {
  title: keepText,
  description: `What a stream keeps for late joiners: nothing; the last response; the last response per key (of at most so many keys, ${lastPerKeyDefault} if no number is given); or a ring of the last responses.`,
  default: d.keep,
  anyOf: [
    { title: keepText, type: 'string', enum: ['none', 'last', 'lastPerKey'] },
    {
      title: keepText,
      type: 'object',
      additionalProperties: false,
      minProperties: 1,
      maxProperties: 1,
      properties: {
        lastPerKey: {
          ...kept,
          description: 'The last response per key, for at most so many keys; the key unchanged for longest is dropped.',
        },
        ring: { ...kept, description: 'The last so many responses.' },
      },
    },
  ],
};

const providerText = 'an address, or {"address": ADDRESS, "serverKey": KEY}';
const address = text('an address', 'Address of a provider: tcp://HOST:PORT or ipc://PATH.');
const provider: Schema = {
  title: providerText,
  description: 'A provider that the dispatcher dials.',
  anyOf: [
    address,
    {
      ...object(
        'A provider with its key.',
        {
          address,
          serverKey: text(
            'a public key of 40 characters (Z85)',
            'Public key that the provider must have; it is then dialled with the keys of "curve".',
          ),
        },
        { required: ['address'] },
      ),
      title: providerText,
    },
  ],
};

const providersText = '"dynamic" or a list of addresses such as ["tcp://127.0.0.1:7501"]';
const providers: Schema = {
  title: providersText,
  description:
    'Who answers: "dynamic" = whoever dials in and offers the code; or the addresses of providers that the dispatcher dials, in order of preference.',
  default: d.providers,
  anyOf: [
    { title: providersText, type: 'string', enum: ['dynamic'] },
    {
      title: providersText,
      type: 'array',
      minItems: 1,
      uniqueItems: true,
      items: provider,
    },
  ],
};

/** May stand in `defaults` and in each service. */
const serviceOptions: Record<string, Schema> = {
  providers,
  sendHandler: text(
    'the name of a send handler',
    `Chooses the provider(s) a request goes to: ${builtInSendHandlers.join(', ')}, or a name of modules.sendHandlers.`,
    { default: d.sendHandler },
  ),
  returnHandlers: list(
    'a list of names of return handlers',
    `Return handlers a subscriber may ask for, the first is the default: ${builtInReturnHandlers.join(', ')}, or names of modules.returnHandlers.`,
    text('the name of a return handler', 'Name of a return handler.'),
    { default: d.returnHandlers },
  ),
  overflow: list(
    'a list of overflow policies',
    'Overflow policies a subscriber may ask for, the first is the default. "block" is lossless but lets a slow subscriber slow the provider, so it is allowed only where it is listed.',
    { title: `one of ${overflows.join(', ')}`, description: 'An overflow policy.', type: 'string', enum: overflows },
    { default: d.overflow },
  ),
  resendAfter: duration('First wait for an answer before a request is sent again.', { default: d.resendAfter }),
  resendCap: duration('The most that wait grows to with backoff; not below resendAfter.', { default: d.resendCap }),
  probeAfter: durationOrZero('Silence after which a live stream is probed. "0s" switches probing off.', {
    default: d.probeAfter,
  }),
  probeMisses: count('Unanswered probes until a stream is stale.', 1000, { default: d.probeMisses }),
  requestWindow: count('Most unanswered requests per provider; the others wait their turn.', 1_000_000, {
    default: d.requestWindow,
  }),
  linger: durationOrZero('How long the upstream subscription outlives the last subscriber. "0s": not at all.', {
    default: d.linger,
  }),
  keep,
  latestRate: {
    title: 'a number from 0.001 to 1000',
    description: 'Messages a second per key of the return handler "latest" where the subscriber names no rate.',
    type: 'number',
    minimum: 0.001,
    maximum: 1000,
    default: d.latestRate,
  },
  limits,
  onProbe: {
    title: 'a name of modules.onProbe',
    description: 'Name of modules.onProbe that is told of probes and their replies. "": none.',
    type: 'string',
    default: d.onProbe,
  },
};

const q = queueOptionDefaults;

/** May stand in services of kind "queue". */
export const queueOptions: Record<string, Schema> = {
  storage: {
    title: '"disk" or "memory"',
    description: 'Queue: on disk in dataDirectory, or a ring in memory that ends with the process.',
    type: 'string',
    enum: ['disk', 'memory'],
    default: q.storage,
  },
  maxMessages: count('Queue: most messages it holds; no bound if left out.', billion),
  maxBytes: size('Queue: most bytes it holds.', { default: q.maxBytes }, maxQueueSize),
  maxAge: durationOrZero('Queue: older messages are dropped. "0s": never.', { default: q.maxAge }),
  retain: durationOrZero('Queue: messages that every group is past stay for so long, for groups that come later.', {
    default: q.retain,
  }),
  full: {
    title: '"refuse" or "dropOldest"',
    description: 'Queue: what happens to a publish over maxMessages or maxBytes.',
    type: 'string',
    enum: ['refuse', 'dropOldest'],
    default: q.full,
  },
  ackTimeout: durationOrZero('Queue: a message not acknowledged in this time is delivered again. "0s": never.', {
    default: q.ackTimeout,
  }),
  maxDeliveries: {
    title: 'a whole number from 0 to 1000000',
    description:
      'Queue: a message delivered so often in vain goes to deadLetter, or is dropped without one. 0: no bound.',
    type: 'integer',
    minimum: 0,
    maximum: 1_000_000,
    default: q.maxDeliveries,
  },
  deadLetter: {
    title: 'the service code of a queue',
    description: 'Queue: where messages go that were delivered too often; none if left out.',
    type: 'integer',
    minimum: 1,
    maximum: maxCode,
  },
  maxMessage: size('Queue: longest message with header it takes; not more than session.maxMessage takes anyway.', {
    default: q.maxMessage,
  }),
};

const recordText = 'the service code of a queue, or {"queue": CODE, "params": [PARAMS, …]}';
const recordQueue = { title: 'the service code of a queue', type: 'integer', minimum: 1, maximum: maxCode };
const record: Schema = {
  title: recordText,
  description:
    'Live: responses are written into this queue, too, with originCode and originParams among their attributes.',
  anyOf: [
    { ...recordQueue, title: recordText },
    {
      title: recordText,
      type: 'object',
      additionalProperties: false,
      required: ['queue'],
      properties: {
        queue: { ...recordQueue, description: 'Where responses are written to.' },
        params: {
          title: 'a list of params',
          description: 'Requests that are kept upstream whether or not anybody subscribes; each any JSON value.',
          type: 'array',
          items: { description: 'Params of a request.' },
        },
      },
    },
  ],
};

const codeText = `a service code from 1 to ${maxCode} (0 is the protocol itself) or a range of codes such as "5000-5999"`;
const service = object(
  'One service code or a range of them. The narrowest range that holds a code wins.',
  {
    code: {
      title: codeText,
      description: 'The service code, or a range of codes as "FIRST-LAST".',
      anyOf: [
        { title: codeText, type: 'integer', minimum: 1, maximum: maxCode },
        { title: codeText, type: 'string', pattern: patterns.codeRange },
      ],
    },
    name: text('a text of 1 to 128 characters', 'For people: logs, metrics, the command line. The code if left out.', {
      maxLength: 128,
      // biome's rule against control characters in regular expressions does not see this text
      pattern: '^[^\\u0000-\\u001f\\u007f]*$',
    }),
    kind: {
      title: '"live" or "queue"',
      description: 'A live service is answered by providers, a queue by the dispatcher itself.',
      type: 'string',
      enum: ['live', 'queue'],
      default: 'live',
    },
    ...serviceOptions,
    ...queueOptions,
    record,
  },
  { required: ['code'] },
);

const moduleReference = (description: string): Schema =>
  object(
    description,
    {
      path: text('a path', 'Path of the ES module, taken from the folder of this file.'),
      options: { description: 'Handed to the module as it is: any JSON value.', default: {} },
    },
    { required: ['path'] },
  );

const modulesOf = (description: string, one: string): Schema => ({
  title: 'an object',
  description,
  type: 'object',
  propertyNames: { title: 'a name: a letter, then letters, digits, "_", "." or "-"', pattern: patterns.moduleName },
  additionalProperties: moduleReference(one),
  default: {},
});

const modules = object('Own handlers, each under the name by which services use it.', {
  sendHandlers: modulesOf('Send handlers by name.', 'A send handler.'),
  returnHandlers: modulesOf('Return handlers by name.', 'A return handler.'),
  onProbe: modulesOf('Modules told of probes, by name.', 'A module told of probes.'),
  messageTypes: {
    ...modulesOf('Handlers of application message types, by type ("128" to "255").', 'A message type handler.'),
    propertyNames: { title: 'a message type from "128" to "255"', pattern: patterns.messageType },
  },
});

const s = sessionDefaults;
const session = object('Sessions of all peers, subscribers as well as providers.', {
  heartbeat: duration('Silence after which a heartbeat is sent.', { default: s.heartbeat }),
  livenessFactor: {
    title: 'a whole number from 2 to 100',
    description: "Silence after which a session is lost, as a multiple of the peer's heartbeat.",
    type: 'integer',
    minimum: 2,
    maximum: 100,
    default: s.livenessFactor,
  },
  maxMessage: size('Longest message with header that is taken, at least 1KiB.', { default: s.maxMessage }),
  receiveWindow: size('Credit granted to each peer, at least 1KiB.', { default: s.receiveWindow }),
  outbox: size('Bound of the outbox per session, beyond the credit of its peer, at least 1KiB.', { default: s.outbox }),
  maxSessions: count('Most sessions at a time.', billion, { default: s.maxSessions }),
  maxSubscriptions: count('Most subscriptions of one session at a time.', billion, { default: s.maxSubscriptions }),
});

/** JSON Schema of a configuration file; `config/schema/trunkline.schema.json` is this object. */
export const configurationSchema: Schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  ...object(
    'Configuration of the Trunkline dispatcher.',
    {
      $schema: { title: 'a text', description: 'Where editors find this schema.', type: 'string' },
      listen: {
        title: 'a list of addresses such as ["tcp://127.0.0.1:7400"]',
        description:
          'Addresses the dispatcher listens at: tcp://HOST:PORT (HOST * is every interface, PORT 0 any free port) or ipc://PATH.',
        type: 'array',
        minItems: 1,
        items: text('an address', 'Address to listen at.'),
      },
      dataDirectory: text(
        'a path',
        'Folder of the store with the queues on disk, taken from the folder of this file; made if need be.',
      ),
      defaults: object('Options of every service that does not say otherwise itself.', serviceOptions),
      services: {
        title: 'a list of services',
        description: 'The forwarding table.',
        type: 'array',
        items: service,
      },
      modules,
      session,
      tokens: {
        title: 'a list of texts',
        description: 'Tokens a peer may show in HELLO. An empty list: none is asked for.',
        type: 'array',
        uniqueItems: true,
        // keeps the value out of messages
        items: text('a text', 'A token.', { writeOnly: true }),
        default: [],
      },
      token: text('a text', 'What the dispatcher shows the providers that it dials.', { writeOnly: true }),
      curve: object(
        "Encryption of every address listened at, and proof of who both ends are (ZeroMQ's CURVE). Key files are read at every start and reload.",
        {
          publicKeyFile: text('a path', "File with the dispatcher's public key, from the folder of this file."),
          secretKeyFile: text('a path', "File with the dispatcher's secret key."),
          allowedKeysFile: text(
            'a path',
            'File with the public keys that are let in, one a line. Without it: whoever knows the public key of the dispatcher.',
          ),
        },
        { required: ['publicKeyFile', 'secretKeyFile'] },
      ),
      drain: duration('Longest a stop may take.', { default: drainDefault }),
      log: object('What is logged.', {
        level: {
          title: `one of ${logLevels.join(', ')}`,
          description: 'Least severe messages that are logged.',
          type: 'string',
          enum: logLevels,
          default: logLevelDefault,
        },
      }),
    },
    { title: 'a Trunkline configuration, an object in braces', required: ['listen', 'services'] },
  ),
};
