/**
 * What operators watch of the log.
 * @property lagSeconds how old the first event is that a subscription has not read, by subscription; of none while the log is away
 * @property oldestCommitSeconds since when the oldest commit is only partly written
 * @property oldestWriter the oldest writing transaction, where readers of the log wait for it
 */
export type LogMeasures = {
  lagSeconds: Map<string, number>;
  oldestCommitSeconds: number;
  oldestWriter?: Writer | undefined;
};

export type Writer = { pid: number; name: string; seconds: number };
