import type { SealedResponse, Write } from '../port/event-store.js';
import type { CommitExtras, DecidedCommand, PendingCommand } from './command-decider.js';
import { MAX_COMMIT_BYTES, toReadModelWrite } from './decided-events.js';

/** Collects commands that are committed together. Each was decided on the state that the one before leads to. */
export class CommitGroup {
  readonly members: { pending: PendingCommand; respond: () => void }[] = [];
  readonly writes: Write[] = [];
  readonly responses: SealedResponse[] = [];
  /** The extras of its only command: a command with any is committed alone. */
  extras: CommitExtras = {};
  private bytes = 0;

  /** Tells whether a command can be committed together with those of the group. */
  accepts({ isAlone, writes }: DecidedCommand): boolean {
    if (this.members.length === 0) return true;
    return !isAlone && this.bytes + (writes?.bytes ?? 0) <= MAX_COMMIT_BYTES;
  }

  /** Adds a command. @param target the stream that it writes, as the first command of the group expects it */
  add(
    pending: PendingCommand,
    { respond, writes }: DecidedCommand,
    target: Pick<Write, 'stream' | 'expected' | 'precondition'>,
  ): void {
    this.members.push({ pending, respond });
    if (!writes) return;
    const { state, events, newStreams, extras, response, bytes } = writes;
    const row = toReadModelWrite(pending.command, state);
    const [main] = this.writes;
    if (main) {
      main.events.push(...events);
      main.row = row;
    } else {
      this.writes.push({ ...target, events, row });
    }
    this.writes.push(...newStreams);
    this.extras = extras;
    this.bytes += bytes;
    if (response) this.responses.push(response);
  }
}
