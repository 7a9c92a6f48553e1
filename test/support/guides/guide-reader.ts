import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { ERROR_CATALOGUE } from '#web/docs/error-catalogue.js';
import { eventually } from '../jest/eventually.js';
import {
  parseHeaders,
  parseLines,
  createMatcher,
  findErrorCode,
  parseSteps,
  type Fence,
  type Language,
  type Step,
} from './guide-parser.js';
import { buildGoFile, writeProgram } from './guide-program.js';
import { startCommand, type Program } from '../services/program.js';
import { NEXT, type Exchange, type RecordingProxy } from '../http/recording-proxy.js';

export type Desk = {
  recorder: RecordingProxy;
  token: string;
  /** With the client for TypeScript in node_modules. */
  folder: string;
  /** With the client for Python. */
  python: string;
  /** The test's values for the names in a guide. */
  instead: Record<string, string>;
  /** The payload of a webhook. */
  arrived?: () => Promise<unknown>;
};

/** Programs that are there for what they are shown to do, and are no requests. */
const ATTACHED = new Set(['attach', 'detach']);

/** Somebody who goes through a guide in one language, runs each sample, and compares what comes with what is shown. */
export class GuideReader {
  private exchanges: Exchange[] = [];
  private secret = '';
  private deliveryId = '';
  private background: Program | undefined;
  private listener: Program | undefined;
  private main: { program: Program; ended: () => boolean } | undefined;

  constructor(
    private readonly desk: Desk,
    private readonly language: Language,
  ) {}

  /** @returns all requests with their responses */
  async read(guide: string): Promise<Exchange[]> {
    try {
      return await this.goThrough(guide);
    } finally {
      this.desk.recorder.goOn();
      await this.main?.program.kill('SIGKILL');
      this.main = undefined;
    }
  }

  private async goThrough(guide: string): Promise<Exchange[]> {
    const all: Exchange[] = [];
    const steps = parseSteps(guide).map((step) => step.map((fence) => this.adaptFence(fence)));
    for (const [at, step] of steps.entries()) {
      const before = this.exchanges;
      await this.take(step, guide, steps);
      if (this.exchanges === before) continue;
      this.expectNoOther(steps.slice(at + 1));
      all.push(...this.exchanges);
    }
    if (this.main) {
      this.desk.recorder.goOn();
      const { program } = this.main;
      const exitCode = await program.exitCode;
      expectSame([exitCode, exitCode === 0 ? '' : program.output()], [0, '']);
    }
    return all;
  }

  async stop(): Promise<void> {
    await this.background?.kill('SIGKILL');
    await this.listener?.kill('SIGTERM');
  }

  /** The program in the language of the reader: every sample of the guide that is in it. */
  findProgram(guide: string): string {
    return this.splitPieces(
      parseSteps(guide).map((step) => step.map((fence) => this.adaptFence(fence))),
    ).join('\n');
  }

  private adaptFence(fence: Fence): Fence {
    const text = Object.entries(this.desk.instead).reduce(
      (sum, [there, here]) => sum.replaceAll(there, here),
      fence.text,
    );
    return { ...fence, text };
  }

  private async take(step: Step, guide: string, steps: Step[]): Promise<void> {
    const [first] = step as [Fence];
    if (first.name !== undefined && /\.\w+$/.test(first.name)) {
      for (const { name = '', text } of step) writeFileSync(join(this.desk.folder, name), text);
    } else if (first.name === 'background') await this.start(chooseFence(step, this.language));
    else if (first.name === 'listener') await this.listen(first.text);
    else if (first.name === 'arrives') {
      expectSame(await this.desk.arrived?.(), createMatcher(JSON.parse(first.text)));
    } else if (first.language === 'json' && !ATTACHED.has(String(first.name))) {
      await this.compare(first);
    } else if (first.language === 'http') this.compareHeaders(first);
    else if (first.language === 'text') {
      await eventually(
        () => `${this.background?.output()}\n${this.listener?.output()}`.split('\n'),
        (lines) => parseLines(first).every((pattern) => lines.some((line) => pattern.test(line))),
      );
    } else if (first.language === 'sh') await this.runShellStep(step, guide, steps);
  }

  private async runShellStep(step: Step, guide: string, steps: Step[]): Promise<void> {
    const fence = chooseFence(step, this.language);
    if (fence.text.startsWith('export ')) {
      const names = [...fence.text.matchAll(/^export (\w+)=\S+$/gm)].map(([, name]) => name);
      const unknown = names.filter((name = '') => !Object.hasOwn(this.environment, name));
      expectSame(unknown, []);
      return;
    }
    // Guides that have no samples in the language are read in curl.
    if (fence.reader === 'sh') await this.inShell(fence.text);
    else await this.inProgram(guide, steps);
    this.exchanges = this.desk.recorder.take();
    expectSame(this.exchanges.length > 0, true);
    for (const { path, body } of this.exchanges) {
      const { secret } = Object(body) as { secret?: string };
      this.secret = secret ?? this.secret;
      if (path.endsWith('/deliveries')) this.deliveryId = String((body as { id: number }[])[0]?.id);
    }
  }

  private get environment(): Record<string, string> {
    const { recorder, token } = this.desk;
    return {
      INKPAD_URL: recorder.url,
      INKPAD_TOKEN: token,
      WEBHOOK_SECRET: this.secret,
      DELIVERY_ID: this.deliveryId,
    };
  }

  private async inShell(text: string): Promise<void> {
    const program = startCommand(['bash', '-c', text], this.environment);
    expectSame([text, await program.exitCode], [text, 0]);
  }

  /** Starts it, or lets it go on, until the next of its pieces is done. */
  private async inProgram(guide: string, steps: Step[]): Promise<void> {
    if (this.main) this.desk.recorder.goOn();
    else this.main = this.startProgram(guide, this.splitPieces(steps));
    const { program, ended } = this.main;
    await eventually(
      () => this.desk.recorder.isWaitedFor || ended(),
      (isDone) => isDone,
    );
    if (ended()) throw new Error(`${guide} in ${this.language}: ${program.output()}`);
  }

  private splitPieces(steps: Step[]): string[] {
    return steps.flatMap((step) =>
      step
        .filter(({ reader, name }) => reader === this.language && name === undefined)
        .map(({ text }) => text),
    );
  }

  private startProgram(guide: string, pieces: string[]): NonNullable<GuideReader['main']> {
    const { language, desk } = this;
    if (language === 'sh' || language === 'csharp') throw new Error(`No program in ${language}`);
    const command = writeProgram(language, guide, pieces, desk.recorder.url + NEXT, desk);
    const program = startCommand(command, this.environment, { cwd: desk.folder });
    let hasEnded = false;
    void program.exitCode.then(() => (hasEnded = true));
    return { program, ended: () => hasEnded };
  }

  private async start({ text }: Fence): Promise<void> {
    const { folder, python, instead } = this.desk;
    const [program = '', ...rest] = text.split(' ');
    const [, file = ''] = rest;
    const command =
      program === 'go'
        ? buildGoFile(file, folder)
        : [program === 'python3' ? python : program, ...rest];
    const port = String(instead['8787']);
    this.background = startCommand(command, { ...this.environment, PORT: port }, { cwd: folder });
    const url = `http://localhost:${port}/hooks`;
    await eventually(
      () =>
        fetch(url, { method: 'POST' }).then(
          ({ status }) => status,
          () => 0,
        ),
      // It is not signed.
      (status) => status === 401,
    );
  }

  /** Starts the listener of the repository instead of the former, which unsubscribes. */
  private async listen(text: string): Promise<void> {
    await this.listener?.kill('SIGTERM');
    const command = text.replace(
      'npx inkpad webhooks:listen',
      `exec ${process.execPath} dist/apps/cli/webhooks-listen.js`,
    );
    const listener = startCommand(['bash', '-c', command], this.environment);
    this.listener = listener;
    await eventually(
      () => listener.output(),
      (output) => output.includes('Listening at '),
    );
    this.desk.recorder.take();
  }

  private async compare(fence: Fence): Promise<void> {
    const matcher = createMatcher(JSON.parse(fence.text));
    const code = findErrorCode(fence);
    if (code !== undefined) {
      const { status } = ERROR_CATALOGUE[code as keyof typeof ERROR_CATALOGUE];
      expectAmong(
        this.exchanges.map((exchange) => exchange.status),
        status,
      );
    }
    const [only] = this.exchanges;
    // What a dispatcher does shows a moment later.
    if (only?.method === 'GET' && /\/(deliveries|statistics)(\?|$)/.test(only.path)) {
      await eventually(
        () => this.repeatRequest(only),
        (body) => isEqual(body, matcher),
      );
    } else {
      expectAmong(
        this.exchanges.map(({ body }) => body),
        matcher,
      );
    }
  }

  private async repeatRequest({ path }: Exchange): Promise<unknown> {
    const { recorder, token } = this.desk;
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(recorder.url + path, { headers });
    recorder.take();
    return response.json();
  }

  private compareHeaders(fence: Fence): void {
    for (const [name, pattern] of parseHeaders(fence)) {
      const values = this.exchanges.map(({ headers }) => headers[name]);
      const matching = values.filter((value) => pattern.test(String(value)));
      expectSame([name, values, matching.length > 0], [name, values, true]);
    }
  }

  /** Where no error is shown there is none. */
  private expectNoOther(following: Step[]): void {
    const end = following.findIndex(([fence]) => fence?.language === 'sh');
    const lines = following.slice(0, end === -1 ? undefined : end).flat();
    const responses = lines.filter(({ language, name }) => language === 'json' && !name);
    if (responses.some((fence) => findErrorCode(fence) !== undefined)) return;
    for (const { method, path, status, body } of this.exchanges) {
      const at = [method, path, status, body];
      expectSame([...at, status < 300], [...at, true]);
    }
  }
}

function chooseFence(step: Step, language: Language): Fence {
  const [first] = step as [Fence];
  return step.find(({ reader }) => reader === language) ?? first;
}

function expectSame(actual: unknown, expected: unknown): void {
  expect(actual).toEqual(expected);
}

function expectAmong(actual: unknown[], expected: unknown): void {
  expect(actual).toContainEqual(expected);
}

function isEqual(value: unknown, matcher: unknown): boolean {
  try {
    expectSame(value, matcher);
    return true;
  } catch {
    return false;
  }
}
