/**
 * Bounds the wait for work, which goes on: what comes of it later is ignored.
 * @param createError creates the error of work that takes too long
 */
export function withTimeout<R>(
  work: Promise<R>,
  withinMs: number,
  createError: () => Error = () => new Error(`no response within ${withinMs} ms`),
): Promise<R> {
  return new Promise((resolve, reject) => {
    const expire = () => reject(createError());
    // One more turn of the event loop: a result that arrived while this process was busy is read first.
    const timer = setTimeout(() => setImmediate(expire), withinMs);
    const stopTimerAnd =
      <V>(end: (value: V) => void) =>
      (value: V) => {
        clearTimeout(timer);
        end(value);
      };
    work.then(stopTimerAnd(resolve), stopTimerAnd(reject));
  });
}
