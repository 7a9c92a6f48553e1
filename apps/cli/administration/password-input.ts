import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';
import { Writable } from 'node:stream';
import { ConfigError } from '#platform/kernel/config-error.js';

const OTHERS_SEE =
  'warning: a password given as an argument is visible to every user of this machine (ps) and stays in the shell history; leave --password out to be asked for it, or use --password-stdin';

export type PasswordOptions = { password?: string; passwordStdin?: true; generate?: true };

/**
 * Reads a new password: typed twice without being shown, or the first line of standard input.
 * @returns undefined where one is to be made
 * @throws ConfigError
 */
export async function readPassword(options: PasswordOptions): Promise<string | undefined> {
  const { password, passwordStdin = false, generate = false } = options;
  const ways = [password !== undefined, passwordStdin, generate].filter((chosen) => chosen);
  if (ways.length > 1) {
    throw new ConfigError('Use only one of --password, --password-stdin and --generate.');
  }
  if (generate) return undefined;
  if (password !== undefined) {
    console.error(OTHERS_SEE);
    return password;
  }
  if (passwordStdin)
    return ((await text(process.stdin)).split('\n', 1)[0] ?? '').replace(/\r$/, '');
  // Without a terminal nobody can be asked, and scripts have always got one that is made.
  return process.stdin.isTTY ? promptTwice() : undefined;
}

async function promptTwice(): Promise<string> {
  const first = await promptHidden('New password: ');
  if ((await promptHidden('Again: ')) !== first) throw new ConfigError('The two passwords differ.');
  return first;
}

/** Reads a line without echoing it; the question goes to standard error. */
async function promptHidden(question: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  process.stderr.write(question);
  const stopped = new AbortController();
  lines.once('SIGINT', () => stopped.abort());
  lines.once('close', () => stopped.abort());
  try {
    return await lines.question('', { signal: stopped.signal });
  } catch (cause) {
    throw new ConfigError('Nothing was changed.', { cause });
  } finally {
    process.stderr.write('\n');
    lines.close();
  }
}
