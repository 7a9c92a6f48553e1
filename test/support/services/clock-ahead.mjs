/**
 * With `--import`: sets the clock of this process ahead of all others by CLOCK_AHEAD_MS, which may be negative. SIGUSR2
 * sets it right, as a correction by NTP does.
 */
let ahead = Number(process.env.CLOCK_AHEAD_MS);

globalThis.Date = class extends Date {
  constructor(...parts) {
    if (parts.length === 0) super(Date.now());
    else super(...parts);
  }

  static now() {
    return super.now() + ahead;
  }
};

process.on('SIGUSR2', () => {
  ahead = 0;
});
