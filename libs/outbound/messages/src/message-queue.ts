/** Messages of one kind that wait to be sent. */
export type MessageQueue<M = unknown> = {
  name: string;
  /** Nobody else gets these for a while. */
  claim: (limit: number) => Promise<M[]>;
  /** Makes an attempt, and records what became of it. Throws only what the database throws. */
  send: (message: M, cut: AbortSignal) => Promise<void>;
};
