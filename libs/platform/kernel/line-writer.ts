import { writeSync } from 'node:fs';

const WRITE_EVERY_MS = 100;
const WRITE_AT_CHARACTERS = 16 * 1024;
/** More would take the memory of the service. */
const MAX_WAITING_CHARACTERS = 16 * 1024 * 1024;
/** How long the exit of the process waits for whoever reads the lines. */
const EXIT_PATIENCE_MS = 2_000;
const EXIT_RETRY_MS = 10;
const NOTHING = Buffer.alloc(0);
const writers: LineWriter[] = [];

/** Writes the lines of all writers, so that they precede what is written in another way. */
export function flushLines(): void {
  for (const writer of writers) writer.flush();
}

/**
 * Writes lines in groups, because a system call for each that also wakes the reader takes longer than the line. Never
 * waits for a slow reader: what a pipe has no room for waits in memory. When the process exits, after an uncaught error
 * too, it writes what is left.
 */
export class LineWriter {
  private lines = '';
  /** What of earlier lines was not written yet. */
  private rest: Buffer = NOTHING;
  private timer: NodeJS.Timeout | undefined;

  /** @param stream standard output or standard error; as soon as it exists, its pipe does not block */
  constructor(private readonly stream: { fd: number }) {
    writers.push(this);
    process.once('exit', () => this.writeRest());
  }

  /** Writes a line, soon. @returns false if it is lost, because too many wait already */
  write(line: string): boolean {
    if (this.rest.length + this.lines.length > MAX_WAITING_CHARACTERS) return false;
    this.lines += `${line}\n`;
    if (this.lines.length >= WRITE_AT_CHARACTERS && this.rest.length === 0) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), WRITE_EVERY_MS).unref();
    return true;
  }

  /** Writes all lines for which there is room; the others follow. */
  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    while (this.takeRest()) {
      try {
        this.rest = this.rest.subarray(writeSync(this.stream.fd, this.rest));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') {
          this.timer = setTimeout(() => this.flush(), WRITE_EVERY_MS).unref();
          return;
        }
        // Whoever read the lines is gone, or the disk is full: that must not end the service.
        this.rest = NOTHING;
      }
    }
  }

  /** Tells whether something is to be written. */
  private takeRest(): boolean {
    if (this.rest.length === 0) {
      this.rest = Buffer.from(this.lines);
      this.lines = '';
    }
    return this.rest.length > 0;
  }

  private writeRest(): void {
    const deadline = performance.now() + EXIT_PATIENCE_MS;
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (;;) {
      this.flush();
      if (this.rest.length === 0 || performance.now() > deadline) return;
      Atomics.wait(pause, 0, 0, EXIT_RETRY_MS);
    }
  }
}
