import { closeSync, fdatasync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';

/**
 * @typedef {'any' | 'stream_exists' | 'no_stream' | bigint} Expected
 * @typedef {{ commit: bigint, prepare: bigint }} Position
 * @typedef {{ id: string, type: string, isJson: boolean, data: Buffer, metadata: Buffer }} Proposed
 * @typedef {Proposed & {
 *   stream: string, revision: bigint, created: bigint, position: bigint, end: bigint,
 * }} Recorded
 * @typedef {{ written: true, revision: bigint, position: bigint | null }
 *   | { written: false, current: bigint, isDeleted?: true }} Outcome
 */

const NO_STREAM = -1n;
/** The revision of a tombstone, and what `$tb` of a deleted stream says. */
const DELETED = 9_223_372_036_854_775_807n;
const TOMBSTONE = '$streamDeleted';
/** The line of the file that stands for a scavenge. */
const SCAVENGE = 'scavenge';
const TICKS_PER_MILLISECOND = 10_000n;
/** Header, ids, lengths and framing of one record: positions are byte offsets and never dense. */
const RECORD_OVERHEAD = 97;
/** Records that are not events (epochs, index checkpoints) also occur between events. */
const SILENT_RECORD = 61n;
const STATISTICS = '$stats-127.0.0.1:2113';
/** Odd, so that no test coincides with it by chance. */
const APPENDS_PER_STATISTICS = 7;

/** The events of a new server's log, before any client has written. */
const FIRST_RECORDS = [
  [`$$${STATISTICS}`, '$metadata', { $maxAge: 86_400 }],
  ['$$$scavenges', '$metadata', { $acl: {} }],
  ['$users', '$User', { user: 'admin' }],
  ['$user-admin', '$UserCreated', { loginName: 'admin' }],
];

/**
 * @param {Position} left
 * @param {Position} right
 */
export function comparePositions(left, right) {
  if (left.commit !== right.commit) return left.commit < right.commit ? -1 : 1;
  if (left.prepare === right.prepare) return 0;
  return left.prepare < right.prepare ? -1 : 1;
}

/** @param {Recorded} event */
export const toPosition = (event) => ({ commit: event.position, prepare: event.position });

/**
 * The log and the rules of an append, without any gRPC. There is one process with one thread: an append is decided,
 * written and visible before the next one is considered.
 */
export class EventLog {
  /** @type {Recorded[]} */
  events = [];
  /** Events that came through `append` since the start, not counting repetitions. */
  appended = 0;

  /** Where records begin and end, those of scavenged events included. @type {{ position: bigint, end: bigint }[]} */
  #records = [];
  /** All events by revision, even those that are hidden or scavenged. @type {Map<string, Recorded[]>} */
  #streams = new Map();
  /** @type {Set<string>} */
  #tombstones = new Set();
  /** How many of its first events a stream has lost. @type {Map<string, number>} */
  #scavenged = new Map();
  /** Ids of the latest appends, for `any` and `stream_exists`; lost with the process, as on the real server. */
  #recentIds = new Map();
  /** @type {Set<() => void>} */
  #listeners = new Set();
  #end = SILENT_RECORD;
  #appends = 0;
  /** @type {number | null} */
  #file = null;
  /** Set after half a line was written: nothing more may be written after it. */
  #broken = null;
  /** Set while the file is behind: the sync that brings what has been written by then. @type {Promise<void> | null} */
  #nextSync = null;
  /** The sync that runs, or ran last. @type {Promise<void>} */
  #sync = Promise.resolve();
  #recentIdLimit;

  /** @param {{ file?: string | undefined, recentIds?: number }} [options] */
  constructor({ file, recentIds = 256 } = {}) {
    this.#recentIdLimit = recentIds;
    if (file !== undefined) this.#open(file);
    if (this.events.length > 0) return;
    for (const [stream, type, data] of FIRST_RECORDS)
      this.#writeSystemEvent(stream, type, JSON.stringify(data));
  }

  /** @param {string} stream */
  stream(stream) {
    return this.#streams.get(stream) ?? [];
  }

  /** Tells whether a stream has a tombstone. @param {string} stream */
  isDeleted(stream) {
    return this.#tombstones.has(stream);
  }

  /**
   * Returns the index of the first event of a stream that reads of it show, by its metadata. $all has the others until a
   * scavenge.
   * @param {string} stream
   */
  firstVisible(stream) {
    const events = this.stream(stream);
    const {
      $tb = 0,
      $maxAge,
      $maxCount = stream.startsWith('$$') ? 1 : Infinity,
    } = this.#readMetadata(stream);
    let first = Math.max(this.#scavenged.get(stream) ?? 0, $tb, events.length - $maxCount);
    const oldest = BigInt(Date.now() - ($maxAge ?? 0) * 1_000) * TICKS_PER_MILLISECOND;
    if ($maxAge !== undefined) while (events[first]?.created < oldest) first += 1;
    return Math.min(first, events.length);
  }

  /**
   * Deletes a stream: hides its events until it is appended to, or for good.
   * @param {string} stream
   * @param {Expected} expected
   * @param {{ isFinal: boolean }} how
   * @returns {Outcome}
   */
  delete(stream, expected, { isFinal }) {
    const current = BigInt(this.stream(stream).length) - 1n;
    if (this.isDeleted(stream)) return { written: false, current, isDeleted: true };
    const isExpected =
      expected === 'any' || (expected === 'stream_exists' ? current >= 0n : expected === current);
    if (!isExpected) return { written: false, current };
    if (isFinal) this.#writeTombstone(stream);
    else this.#hideBefore(stream, DELETED);
    for (const listener of this.#listeners) listener();
    return { written: true, revision: current, position: this.events.at(-1).position };
  }

  /** Destroys the events that reads of their streams do not show, as a scavenge does. The last of a stream stays. */
  scavenge() {
    this.#write(SCAVENGE);
    this.#destroyHidden();
  }

  /** @param {() => void} listener */
  onAppend(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Index of the first event at or after the position, or strictly after it.
   * @param {Position} position
   * @param {{ exclusive: boolean }} how
   */
  indexFrom(position, { exclusive }) {
    let low = 0;
    let high = this.events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const order = comparePositions(toPosition(this.events[middle]), position);
      if (order > 0 || (order === 0 && !exclusive)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /**
   * A position is where a record begins or ends; any other is refused, as on the real server.
   * @param {Position} position
   */
  isPosition({ commit, prepare }) {
    if (commit < prepare) return false;
    if (commit === 0n || commit >= this.#end) return true;
    let [low, high] = [0, this.#records.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#records[middle].position >= commit) high = middle;
      else low = middle + 1;
    }
    return this.#records[low]?.position === commit || this.#records[low - 1]?.end === commit;
  }

  /**
   * @param {string} stream
   * @param {Expected} expected
   * @param {Proposed[]} proposed
   * @returns {Outcome}
   */
  append(stream, expected, proposed) {
    const events = this.stream(stream);
    const current = BigInt(events.length) - 1n;
    const conflict = { written: false, current };
    if (this.isDeleted(stream)) return { ...conflict, isDeleted: true };
    // A stream whose events are all hidden may be begun anew, at its next revision.
    const isHidden = this.#readMetadata(stream).$tb > current;
    if (isHidden && (expected === 'no_stream' || expected === 'any')) {
      this.#hideBefore(stream, current + 1n);
      return this.#append(stream, proposed);
    }
    if (isHidden && expected === current) this.#hideBefore(stream, current + 1n);

    if (expected === 'stream_exists' && events.length === 0) {
      // A stream with metadata counts as existing.
      if (this.stream(`$$${stream}`).length === 0) return conflict;
    }
    if (expected === 'any' || expected === 'stream_exists') {
      const repeated = this.#recentlyWritten(stream, proposed);
      if (repeated === 'partly') return conflict;
      if (repeated !== null) return repeated;
      return this.#append(stream, proposed);
    }

    const at = expected === 'no_stream' ? NO_STREAM : expected;
    if (at > current) return conflict;
    if (at === current) return this.#append(stream, proposed);
    if (proposed.length === 0) return conflict;
    for (const [offset, event] of proposed.entries()) {
      if (events[Number(at) + 1 + offset]?.id !== event.id) return conflict;
    }
    return repetition(events[Number(at) + proposed.length]);
  }

  /**
   * Waits until what has been written is on disk. As on the real server, one sync serves all appends that wait for it.
   * @returns {Promise<void>}
   */
  async sync() {
    if (this.#file === null) return;
    this.#nextSync ??= this.#sync.then(() => {
      this.#nextSync = null;
      if (this.#file === null) return undefined;
      return (this.#sync = new Promise((resolve, reject) => {
        fdatasync(this.#file, (error) => {
          this.#broken ??= error;
          if (error) reject(error);
          else resolve();
        });
      }));
    });
    await this.#nextSync;
  }

  close() {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  /**
   * @param {string} stream
   * @param {Proposed[]} proposed
   */
  #recentlyWritten(stream, proposed) {
    let last = null;
    for (const [offset, { id }] of proposed.entries()) {
      const recent = this.#recentIds.get(id);
      if (recent?.stream !== stream) return offset === 0 ? null : 'partly';
      last = recent;
    }
    return last === null ? null : repetition(last);
  }

  /**
   * @param {string} stream
   * @param {Proposed[]} proposed
   * @returns {Outcome}
   */
  #append(stream, proposed) {
    const first = this.stream(stream).length;
    if (proposed.length === 0) {
      return { written: true, revision: BigInt(first) - 1n, position: null };
    }
    const created = BigInt(Date.now()) * TICKS_PER_MILLISECOND;
    let end = this.#end;
    const recorded = proposed.map((event, offset) => {
      const position = end;
      end += recordSize(stream, event);
      return { ...event, stream, revision: BigInt(first + offset), created, position, end };
    });
    this.#persist(recorded);
    this.#take(recorded);
    for (const event of recorded) {
      this.#recentIds.delete(event.id);
      this.#recentIds.set(event.id, event);
      if (this.#recentIds.size > this.#recentIdLimit) {
        this.#recentIds.delete(this.#recentIds.keys().next().value);
      }
    }
    this.appended += recorded.length;
    this.#appends += 1;
    if (this.#appends % APPENDS_PER_STATISTICS === 0) {
      this.#writeSystemEvent(STATISTICS, '$statsCollected', `{"proc-id":${process.pid}}`);
      this.#end += SILENT_RECORD;
    }
    for (const listener of this.#listeners) listener();
    const last = recorded.at(-1);
    return { written: true, revision: last.revision, position: last.position };
  }

  /** @param {string} stream */
  #readMetadata(stream) {
    const last = this.stream(`$$${stream}`).at(-1);
    return last ? JSON.parse(last.data.toString('utf8')) : {};
  }

  /** Changes one setting of a stream's metadata. @param {string} stream @param {bigint} revision */
  #hideBefore(stream, revision) {
    const metadata = JSON.stringify({ ...this.#readMetadata(stream), $tb: 0 });
    // Numbers of JavaScript do not hold the greatest revision.
    this.#writeSystemEvent(
      `$$${stream}`,
      '$metadata',
      metadata.replace('"$tb":0', `"$tb":${revision}`),
    );
  }

  /** @param {string} stream */
  #writeTombstone(stream) {
    const event = { type: TOMBSTONE, isJson: false, data: Buffer.alloc(0) };
    this.#writeAlone(stream, event, DELETED);
  }

  /** @param {string} content as JSON */
  #writeSystemEvent(stream, type, content) {
    const event = { type, isJson: true, data: Buffer.from(content) };
    this.#writeAlone(stream, event, BigInt(this.stream(stream).length));
  }

  #writeAlone(stream, content, revision) {
    const event = { id: crypto.randomUUID(), metadata: Buffer.alloc(0), ...content };
    const position = this.#end;
    const recorded = {
      ...event,
      stream,
      revision,
      created: BigInt(Date.now()) * TICKS_PER_MILLISECOND,
      position,
      end: position + recordSize(stream, event),
    };
    this.#persist([recorded]);
    this.#take([recorded]);
  }

  #destroyHidden() {
    for (const [stream, events] of this.#streams) {
      const last = this.isDeleted(stream) ? events.length : events.length - 1;
      this.#scavenged.set(
        stream,
        Math.min(this.isDeleted(stream) ? last : this.firstVisible(stream), last),
      );
    }
    this.events = this.events.filter(
      ({ stream, revision }) => revision === DELETED || revision >= this.#scavenged.get(stream),
    );
  }

  /** @param {Recorded[]} recorded */
  #take(recorded) {
    for (const event of recorded) {
      const stream = this.#streams.get(event.stream);
      if (event.revision === DELETED) this.#tombstones.add(event.stream);
      else if (stream === undefined) this.#streams.set(event.stream, [event]);
      else stream.push(event);
      this.events.push(event);
      this.#records.push(event);
      this.#end = event.end;
    }
  }

  /**
   * One line per append, so that after a kill an append is there as a whole or not at all.
   * @param {Recorded[]} recorded
   */
  #persist(recorded) {
    this.#write(recorded.map(toLine));
  }

  /** @param {unknown} content of one line */
  #write(content) {
    if (this.#file === null) return;
    if (this.#broken !== null) throw this.#broken;
    const line = Buffer.from(`${JSON.stringify(content)}\n`);
    try {
      let offset = 0;
      while (offset < line.length) offset += writeSync(this.#file, line, offset);
    } catch (error) {
      this.#broken = error;
      throw error;
    }
  }

  /** @param {string} path */
  #open(path) {
    this.#file = openSync(path, 'a+');
    const content = readFileSync(path);
    const complete = content.lastIndexOf(0x0a) + 1;
    // A line that a kill cut off was never confirmed.
    if (complete < content.length) ftruncateSync(this.#file, complete);
    const lines = content.subarray(0, complete).toString('utf8').split('\n');
    for (const line of lines.slice(0, -1)) {
      const content = JSON.parse(line);
      if (content === SCAVENGE) this.#destroyHidden();
      else this.#take(content.map(fromLine));
    }
  }
}

/** @param {Recorded} last */
function repetition(last) {
  return { written: true, revision: last.revision, position: last.position };
}

/**
 * @param {string} stream
 * @param {Proposed} event
 */
function recordSize(stream, event) {
  const content = event.data.length + event.metadata.length;
  const names = Buffer.byteLength(stream) + Buffer.byteLength(event.type);
  return BigInt(RECORD_OVERHEAD + names + content);
}

/** @param {Recorded} event */
function toLine(event) {
  return {
    ...event,
    data: event.data.toString('base64'),
    metadata: event.metadata.toString('base64'),
    revision: String(event.revision),
    created: String(event.created),
    position: String(event.position),
    end: String(event.end),
  };
}

/** @returns {Recorded} */
function fromLine(line) {
  return {
    ...line,
    data: Buffer.from(line.data, 'base64'),
    metadata: Buffer.from(line.metadata, 'base64'),
    revision: BigInt(line.revision),
    created: BigInt(line.created),
    position: BigInt(line.position),
    end: BigInt(line.end),
  };
}
