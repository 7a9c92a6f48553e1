/**
 * What others have done to streams with names like ours on a shared server: one sentence for each stream.
 * @property notes what harms no record of ours
 */
export type Damage = { differences: string[]; notes: string[] };

export type DamageCounts = { foreignStreams: number; trimmedStreams: number };
