import type { Logger } from '@nestjs/common';
import type { Damage, DamageCounts } from '../port/log-measures.js';

/** An event of somebody else in a stream with a name like ours, as the server names it. */
export type ForeignEvent = { stream: string; revision: bigint; type: string; createdAt: Date };

/** What an administrator has set for a stream of ours. @property revision in the stream of its settings */
export type StreamSettings = { stream: string; revision: bigint; settings: object };

/** @property harmful those that hide events or deny them. @property beginning where the stream began when that was read */
type ReadSettings = { revision: bigint; harmful: string[]; beginning?: StreamBeginning };

/** @property first the first revision that can be read; null: nothing can be read. @property isDenied nothing may be read */
export type StreamBeginning = { first: number | null; isDenied: boolean };

/** A commit of several streams of which a part is written. @property damage why the rest cannot be */
export type IncompleteCommit = { createdAt: Date; damage: string };

/** Streams that are remembered and counted. */
const MAX_STREAMS = 10_000;
/** Streams that get a line in the log. */
const MAX_LINES = 100;
/** Settings that hide events, which the next scavenge destroys, or deny them. */
const HARMFUL = ['$tb', '$maxCount', '$maxAge', '$acl'];
const TAKE_BACK = "set the stream's metadata to {}, or to what it was before";
const MANUAL = 'docs/operating/incidents.md, Streams that others have changed';

/**
 * Collects what a process has read of others' doings in streams with names like ours: events that are not ours, and
 * settings that hide our events. Logs a line for each stream.
 */
export class ForeignEvents {
  private readonly events = new Map<string, ForeignEvent>();
  private readonly settings = new Map<string, ReadSettings>();
  private lines = 0;

  constructor(private readonly log: Logger) {}

  addEvent(event: ForeignEvent): void {
    const earlier = this.events.get(event.stream);
    if (earlier ? event.revision >= earlier.revision : this.events.size >= MAX_STREAMS) return;
    this.events.set(event.stream, event);
    if (!earlier) this.warn(`${describeEvent(event)} is not Inkpad's and is passed by`);
  }

  addSettings({ stream, revision, settings }: StreamSettings): void {
    const earlier = this.settings.get(stream);
    if (earlier ? revision <= earlier.revision : this.settings.size >= MAX_STREAMS) return;
    const harmful = listHarmful(settings);
    this.settings.set(stream, { revision, harmful });
    if (harmful.length > 0) {
      this.warn(
        `${describeName(stream)}: its settings (${harmful.join(', ')}) hide events or deny them; inkpad verify says which`,
      );
    }
  }

  /** Names a stream of somebody else. */
  findExample(): string | undefined {
    const [example] = this.events.keys();
    return example && describeName(example);
  }

  count(): DamageCounts {
    const trimmed = [...this.settings.values()].filter(isHarmful);
    return { foreignStreams: this.events.size, trimmedStreams: trimmed.length };
  }

  /** Reads where the streams with harmful settings begin now. A list that lets us read counts no longer. */
  async readBeginnings(read: (stream: string) => Promise<StreamBeginning>): Promise<void> {
    for (const [stream, settings] of this.settings) {
      if (settings.harmful.length > 0) settings.beginning = await read(stream);
    }
  }

  /** @param incomplete commits that damage keeps from being completed */
  describe(incomplete: IncompleteCommit[]): Damage {
    const damage: Damage = { differences: incomplete.map(describeIncomplete), notes: [] };
    for (const event of this.events.values()) {
      if (event.revision > 0n) damage.differences.push(describeDamagedRecord(event));
      else {
        damage.notes.push(
          `${describeEvent(event)} is somebody else's, and Inkpad never uses that stream: there is nothing to do (${MANUAL})`,
        );
      }
    }
    for (const [stream, { harmful, beginning }] of this.settings) {
      if (harmful.length === 0 || !beginning) continue;
      const harm = describeHarm(beginning, harmful);
      if (harm !== undefined) {
        damage.differences.push(`${describeName(stream)}: ${harm}`);
        continue;
      }
      damage.notes.push(
        `${describeName(stream)}: its settings ($acl) let the database user in EVENT_STORE_URL read it, and may deny appends: if changes of its record fail, ${TAKE_BACK} (${MANUAL})`,
      );
    }
    return damage;
  }

  private warn(line: string): void {
    if (this.lines < MAX_LINES) this.log.warn(line);
    else if (this.lines === MAX_LINES) this.log.warn('further streams: inkpad verify lists them');
    this.lines++;
  }
}

function listHarmful(settings: object): string[] {
  return HARMFUL.flatMap((name) => {
    const value = (settings as Record<string, unknown>)[name];
    if (value === undefined || value === null) return [];
    return typeof value === 'number' && name !== '$tb' ? [`${name} ${value}`] : [name];
  });
}

/** Tells whether settings harm a stream, as far as is known before its beginning is read. */
function isHarmful({ harmful, beginning }: ReadSettings): boolean {
  if (harmful.length === 0) return false;
  return !beginning || describeHarm(beginning, harmful) !== undefined;
}

function describeIncomplete({ createdAt, damage }: IncompleteCommit): string {
  return `a commit of ${createdAt.toISOString()} is incomplete, since ${damage}: it is completed once that is repaired, or by moving the history to PostgreSQL (${MANUAL})`;
}

function describeDamagedRecord(event: ForeignEvent): string {
  const what =
    event.type === '$streamDeleted'
      ? 'deletes the stream for good, and the next scavenge destroys its events: stop the service before it, and move the history to PostgreSQL'
      : "is not Inkpad's, so the record cannot be changed: find out who appends there, then move the history to PostgreSQL";
  return `${describeEvent(event)} ${what} (${MANUAL})`;
}

/** Describes what settings do to a stream; undefined when they do nothing. */
function describeHarm({ first, isDenied }: StreamBeginning, harmful: string[]): string | undefined {
  const names = harmful.join(', ');
  if (isDenied) {
    return `its settings (${names}) do not let the database user in EVENT_STORE_URL read it: ${TAKE_BACK} (${MANUAL})`;
  }
  if (first === 0 && names === '$acl') return undefined;
  if (first === 0) {
    return `its settings (${names}) hide no event yet, and will: ${TAKE_BACK} (${MANUAL})`;
  }
  const lost =
    first === null ? 'all of its events' : first === 1 ? 'event 0' : `events 0 to ${first - 1}`;
  return `its settings (${names}) hide ${lost}, which the next scavenge destroys: before it, ${TAKE_BACK} (${MANUAL})`;
}

/** Describes an event on one line, whatever its names contain. */
function describeEvent({ stream, revision, type, createdAt }: ForeignEvent): string {
  return `${describeName(stream)}: event ${revision} (${describeName(type)}, ${createdAt.toISOString()})`;
}

/** Shortens somebody else's name, and escapes what would end the line. */
function describeName(name: string): string {
  return JSON.stringify(name.slice(0, 200)).slice(1, -1);
}
