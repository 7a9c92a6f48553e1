/**
 * What others have done to streams with names like ours on a shared server: one sentence for each stream.
 * @property notes what harms no record of ours
 */
export type Damage = { differences: string[]; notes: string[] };

export type DamageCounts = { foreignStreams: number; trimmedStreams: number };

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
