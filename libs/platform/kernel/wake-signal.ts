/** Lets a loop wait until it is woken. One that is woken while it works does not wait next time. */
export class WakeSignal {
  private isWoken = false;
  private endWait: () => void = () => undefined;

  wake(): void {
    this.isWoken = true;
    this.endWait();
  }

  /** Wakes after a delay, never before its end: what is due then would not be due yet. Timers may be a millisecond early. */
  wakeIn(delayMs: number): void {
    if (delayMs > 0) setTimeout(() => this.wake(), Math.ceil(delayMs) + 1).unref();
    else this.wake();
  }

  /** Waits until it is woken, the time is over (which may be infinite) or the signal aborts. @returns whether it was woken */
  async wait(milliseconds: number, signal: AbortSignal): Promise<boolean> {
    if (!this.isWoken && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const finish = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', finish);
          this.endWait = () => undefined;
          resolve();
        };
        const timer = milliseconds < Infinity ? setTimeout(finish, milliseconds) : undefined;
        signal.addEventListener('abort', finish, { once: true });
        this.endWait = finish;
      });
    }
    const { isWoken } = this;
    this.isWoken = false;
    return isWoken;
  }
}
