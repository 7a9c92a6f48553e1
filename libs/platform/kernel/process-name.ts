/** The processes of the service. Both run on one machine, so each has a port of its own for metrics. */
export const METRICS_PORTS = { api: 9464, dispatcher: 9465 } as const;

export type ProcessName = keyof typeof METRICS_PORTS;
