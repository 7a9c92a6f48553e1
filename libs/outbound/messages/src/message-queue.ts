/** The queued messages of one kind. */
export type MessageQueue<M = unknown> = {
  name: string;
  /** Claims due messages for a while. */
  claim: (limit: number) => Promise<M[]>;
  /** Makes an attempt and records its outcome. Throws errors of the database only. */
  send: (message: M, cut: AbortSignal) => Promise<void>;
};
