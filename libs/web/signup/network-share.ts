/** One network may use a tenth of what strangers may use of a store in a day (ADR-0089). */
const MIN_NETWORKS = 10;

export function calculateNetworkShare(limit: number): number {
  return Math.max(1, Math.floor(limit / MIN_NETWORKS));
}
