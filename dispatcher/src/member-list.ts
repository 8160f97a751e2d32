import type { Member } from './member.js';
import type { Peer } from './peer.js';

/** From this many members on they are found by a map instead of by looking at each. */
const INDEX_FROM = 16;

/** The members of a lane with more than one, or of one whose return handler asks for the list again and again. */
export class MemberList {
  readonly items: Member[] = [];
  private index: Map<Peer, Member> | undefined;

  find(peer: Peer): Member | undefined {
    if (this.index !== undefined) return this.index.get(peer);
    for (const member of this.items) if (member.peer === peer) return member;
    return undefined;
  }

  add(member: Member): void {
    member.index = this.items.length;
    this.items.push(member);
    if (this.index !== undefined) this.index.set(member.peer, member);
    else if (this.items.length >= INDEX_FROM) {
      this.index = new Map(this.items.map((each) => [each.peer, each]));
    }
  }

  remove(member: Member): void {
    const last = this.items.pop()!;
    if (last !== member) {
      last.index = member.index;
      this.items[member.index] = last;
    }
    this.index?.delete(member.peer);
  }
}
