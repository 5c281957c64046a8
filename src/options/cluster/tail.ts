import type { LogClient } from '../../store/log.ts';
import { isCollectionName, findOrAddTable, type Tables } from '../../store/memory/table.ts';
import { applyChange, listChanges } from '../../store/memory/transaction.ts';
import type { KeyValue } from './etcd.ts';
import { decodeGroup, firstHead, groupKey, type GroupHead } from './group-format.ts';
import { unreadable } from './shared-snapshot.ts';
import type { WriterTurns } from './turns.ts';

/** The end of the log as this node knows it, and the groups waiting to be applied. */
export class Tail {
  head = firstHead;
  /** All groups up to this revision of etcd are known here. */
  revision = 0;
  readonly #prefix: string;
  readonly #tables: Tables;
  readonly #turns: WriterTurns;
  readonly #waiting = new Map<string, KeyValue>();

  constructor(prefix: string, tables: Tables, turns: WriterTurns) {
    this.#prefix = prefix;
    this.#tables = tables;
    this.#turns = turns;
  }

  get nextKey(): string {
    return groupKey(this.#prefix, this.head.sequence + 1);
  }

  /** The number of groups that wait: the next one or later ones. */
  get waiting(): number {
    return this.#waiting.size;
  }

  add(groups: readonly KeyValue[]): void {
    for (const group of groups) {
      if (group.key >= this.nextKey) this.#waiting.set(group.key, group);
    }
  }

  advance(head: GroupHead): void {
    this.#waiting.delete(this.nextKey);
    this.head = head;
    this.#turns.advance(head.id);
  }

  /**
   * Applies groups that follow the last one here, and drops others. Returns false if none follows.
   */
  apply(client: LogClient): boolean {
    const before = this.head;
    for (;;) {
      const next = this.#waiting.get(this.nextKey);
      const group = next && decodeGroup(next.value, this.head);
      if (next === undefined || group === undefined) break;
      client.published(
        Array.from(listChanges(group), ([change, sequence]) => {
          const name = Array.isArray(change) && change[0];
          if (typeof name === 'string' && isCollectionName(name))
            findOrAddTable(this.#tables, name);
          const applied = applyChange(change, sequence, this.#tables);
          if ('problem' in applied) throw unreadable(String(name), applied);
          return applied;
        }),
      );
      this.advance(group.next);
      this.revision = next.revision;
    }
    this.#waiting.clear();
    return this.head !== before;
  }
}
