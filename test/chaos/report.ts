/** Writes a line for whoever watches the run. */
export const report = (text: string) => process.stderr.write(`${text}\n`);
