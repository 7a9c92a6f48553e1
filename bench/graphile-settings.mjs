export const TASK = 'deliver';

/** As Graphile Worker's documentation recommends for throughput: a local queue, and completions in batches. */
export function preset({ url, concurrency }) {
  return {
    worker: {
      connectionString: url,
      concurrentJobs: concurrency,
      maxPoolSize: 20,
      pollInterval: 1_000,
      preparedStatements: true,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  };
}
