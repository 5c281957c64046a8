import { readChunks, type Files } from './files.ts';
import { decodeFirst, decodeLine, journalFormat, journalName, refuseNewer, type Manifest } from './journal-format.ts';
import { StoreDamageError } from './store.ts';
import { isCount } from './table.ts';

/** A line, its line feed included where it has one. */
export interface Line {
  readonly offset: number;
  readonly bytes: Buffer;
}

/**
 * Reads one journal and judges its lines, by the cases J1 to J9 of `recovery.ts`. What it found is complete when
 * `groups` has come to its end.
 */
export class JournalReader {
  readonly name: string;
  readonly manifest: Manifest;
  /** Of the last commit so far. */
  sequence: number;
  /** The CRC-32 of the last good line so far. */
  chain: number;
  /** Where the good lines end. */
  size = 0;
  /** A last line that is damaged: of the newest journal, what a write has left that was cut short. */
  torn: Line | undefined;
  readonly #files: Files;

  private constructor(files: Files, manifest: Manifest, chain: number) {
    this.#files = files;
    this.name = journalName(manifest.journal);
    this.manifest = manifest;
    this.sequence = manifest.after;
    this.chain = chain;
  }

  /** Reads the manifest. */
  static async open(files: Files, number: number): Promise<JournalReader> {
    const name = journalName(number);
    for await (const { bytes } of lines(files, name)) {
      refuseNewer(name, bytes, journalFormat);
      const first = decodeFirst(bytes);
      if (first?.manifest.journal === number) return new JournalReader(files, first.manifest, first.chain);
      break;
    }
    throw new StoreDamageError('J9', name, 0, 'its first line is damaged');
  }

  async *groups() {
    for await (const line of lines(this.#files, this.name)) {
      const { offset, bytes } = line;
      if (offset > 0) {
        if (this.manifest.closed) throw this.#damage('J4', offset, 'something follows the line that closed it');
        if (isPadding(bytes)) return;
        if (this.torn !== undefined) {
          const problem = 'this line is damaged, missing, repeated or of another journal';
          throw this.#damage('J2', this.torn.offset, problem);
        }
        const decoded = decodeLine(bytes, this.chain);
        if (decoded === undefined) {
          // Torn, should nothing follow.
          this.torn = line;
          continue;
        }
        const { sequence: first, commits } = decoded.value;
        if (!isCount(first) || !Array.isArray(commits) || commits.length === 0) {
          throw this.#damage('J5', offset, 'this line is no group');
        }
        if (first !== this.sequence + 1) {
          throw this.#damage('J3', offset, `the sequence goes on with ${first} after ${this.sequence}`);
        }
        this.chain = decoded.chain;
        this.sequence += commits.length;
        yield { offset, first, last: this.sequence, commits, body: decoded.body };
      }
      this.size = offset + bytes.length;
    }
  }

  #damage(label: string, offset: number, problem: string): StoreDamageError {
    return new StoreDamageError(label, this.name, offset, problem);
  }
}

/** Splits a file after its line feeds. */
export async function* lines(files: Files, name: string): AsyncGenerator<Line, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  let offset = 0;
  for await (const chunk of readChunks(files, name)) {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(0x0a) + 1; end > 0; end = rest.indexOf(0x0a) + 1) {
      yield { offset, bytes: rest.subarray(0, end) };
      offset += end;
      rest = rest.subarray(end);
    }
  }
  if (rest.length > 0) yield { offset, bytes: rest };
}

/** Whether these bytes are what was written ahead of the lines to come. */
export function isPadding(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20);
}

/** The `crc` that a line says it has: from there the chain goes on after a damaged line. */
export function claimedChain(line: Buffer): number | undefined {
  const claimed = /,"crc":"([0-9a-f]{8})"\}\n$/.exec(line.toString('latin1', Math.max(0, line.length - 19)))?.[1];
  return claimed === undefined ? undefined : Number.parseInt(claimed, 16);
}
