const BAR = 30;
const EVERY_MS = { terminal: 200, lines: 5_000 };

type Output = { isTTY?: boolean | undefined; write: (text: string) => unknown };

/** Standard error: each line is a message of the program, which may have to be a line of a log. */
const STANDARD_ERROR: Output = process.stderr.isTTY
  ? process.stderr
  : { write: (text) => console.error(text.trimEnd()) };

/** Shows how far a count has got, with rate and time left: a bar on a terminal, otherwise a line now and then. */
export class Progress {
  private done = 0;
  private shownAt = 0;
  private isShown = false;
  private readonly startedAt: number;
  /** When something was done for the first time. Starting threads says nothing about the rate. */
  private first: { at: number; done: number } | undefined;

  /** @param total as far as known; it may turn out to be more */
  constructor(
    private readonly what: string,
    private readonly total: number,
    private readonly output: Output = STANDARD_ERROR,
    private readonly now: () => number = Date.now,
  ) {
    this.startedAt = this.now();
    this.shownAt = this.startedAt;
  }

  add(count: number): void {
    this.done += count;
    const isFirst = this.first === undefined;
    this.first ??= { at: this.now(), done: this.done };
    if (isFirst && !this.output.isTTY) return;
    const every = this.output.isTTY ? EVERY_MS.terminal : EVERY_MS.lines;
    if (this.now() - this.shownAt < every) return;
    this.shownAt = this.now();
    this.show();
  }

  end(): void {
    this.show();
    if (this.output.isTTY) this.output.write('\n');
  }

  /** Ends work that is usually too short to show its progress. */
  endIfShown(): void {
    if (this.isShown) this.end();
  }

  private show(): void {
    this.isShown = true;
    const text = this.text();
    this.output.write(this.output.isTTY ? `\r${this.bar()} ${text}\u001b[K` : `${text}\n`);
  }

  private text(): string {
    const { at, done } =
      this.first && this.first.done < this.done ? this.first : { at: this.startedAt, done: 0 };
    const seconds = Math.max(0.001, (this.now() - at) / 1_000);
    const rate = (this.done - done) / seconds;
    const total = Math.max(this.total, this.done);
    const left = rate > 0 ? Math.ceil((total - this.done) / rate) : 0;
    const percent = total === 0 ? 100 : Math.floor((100 * this.done) / total);
    return `${percent} % (${formatCount(this.done)} of ${formatCount(total)} ${this.what}), ${formatCount(rate)}/s, ${formatDuration(left)} left`;
  }

  private bar(): string {
    const total = Math.max(this.total, this.done);
    const full = total === 0 ? BAR : Math.floor((BAR * this.done) / total);
    return `[${'#'.repeat(full)}${'-'.repeat(BAR - full)}]`;
  }
}

function formatCount(count: number): string {
  return Math.round(count).toLocaleString('en');
}

function formatDuration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
