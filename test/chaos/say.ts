/** For whoever watches the run. */
export const say = (text: string) => process.stderr.write(`${text}\n`);
