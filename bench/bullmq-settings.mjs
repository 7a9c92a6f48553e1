export const QUEUE = 'webhooks';

/** Ten attempts, as in Inkpad, and few finished jobs kept, as BullMQ's documentation recommends. */
export const JOB_OPTIONS = {
  attempts: 10,
  backoff: { type: 'exponential', delay: 5_000 },
  removeOnComplete: { count: 1_000 },
  removeOnFail: { count: 5_000 },
};
