/** Reports settings that cannot be used. The message names every one of them and needs no stack. */
export class ConfigError extends Error {}

/** Reports something outside this process that cannot be used: it may come back by itself. */
export class UnreachableError extends ConfigError {}
