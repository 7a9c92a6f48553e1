/** What a check has found. @property text what is so, and what to do about it */
export type Finding = { state: 'ok' | 'warning' | 'wrong'; name: string; text: string };

/** Looks at one thing. Every wait in it ends. */
export type Check = () => Promise<Finding[]>;

export const ok = (name: string, text: string): Finding => ({ state: 'ok', name, text });
export const warning = (name: string, text: string): Finding => ({ state: 'warning', name, text });
export const wrong = (name: string, text: string): Finding => ({ state: 'wrong', name, text });
