/** A value that is there, or will be. Awaiting one that is there costs two promises and a turn of the microtasks. */
export type Awaitable<T> = T | Promise<T>;
