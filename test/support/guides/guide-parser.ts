import { readFileSync } from 'node:fs';
import { expect } from '@jest/globals';
import { Marked, type Token, type Tokens } from 'marked';
import { addCompiledSamples } from '../../../tools/build/compiled-samples.mjs';

/** The guides as a reader goes through them: samples to be run, and what is said to come of them. */

/** Every guide has its samples in these. */
export const LANGUAGES = ['sh', 'ts', 'python'] as const;
/** Some guides have them in these too. */
export const COMPILED = ['java', 'go'] as const;
/** Nothing runs samples in C#: only their requests are compared. */
export type Language = (typeof LANGUAGES)[number] | (typeof COMPILED)[number] | 'csharp';

/** A piece of code between two fences. */
export type Fence = {
  language: string;
  /** Of a file, or what it is. */
  name: string | undefined;
  /** The language of its readers, where there is one file for each. */
  reader: Language | undefined;
  text: string;
};

/** Pieces that stand one after the other say the same, each in its language. */
export type Step = Fence[];

const READERS: Record<string, Language> = {
  sh: 'sh',
  ts: 'ts',
  js: 'ts',
  python: 'python',
  csharp: 'csharp',
  java: 'java',
  go: 'go',
};

/** In the order of the menu, and the first page, which shows a command too, after those that it leads to. */
export function guideNames(): string[] {
  const readme = read('README');
  const named = [...readme.matchAll(/\]\(([\w-]+)\.md\)/g)].map(([, name = '']) => name);
  return [...named, 'README'];
}

export function parseSteps(guide: string): Step[] {
  const steps: Step[] = [];
  let last: Token | undefined;
  for (const token of new Marked().lexer(read(guide))) {
    if (token.type === 'space') continue;
    if (token.type === 'code') {
      const fence = parseFence(token as Tokens.Code);
      const step = steps.at(-1);
      const isOther =
        fence.reader !== undefined &&
        step?.every(({ reader }) => reader !== undefined && reader !== fence.reader);
      if (isOther && last?.type === 'code') step?.push(fence);
      else steps.push([fence]);
    }
    last = token;
  }
  return steps;
}

function read(guide: string): string {
  const file = `docs/guides/${guide}.md`;
  return addCompiledSamples(file, readFileSync(file, 'utf8'));
}

function parseFence({ text, lang = '' }: Tokens.Code): Fence {
  const [language = '', name, choice = language] = lang.split(' ');
  return { language, name, reader: READERS[choice], text };
}

/** Patterns of values that differ each time; a guide's sample has the same form. */
const FREE: Record<string, RegExp> = {
  code: /^[2-9A-HJ-NP-Z]{8}$/,
  secret: /^whsec_[A-Za-z0-9+/]{43}=$/,
  request_id: /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/,
};

/** Creates a matcher for values with at least the fields of a guide's sample. … stands for anything; lists are complete. */
export function createMatcher(expected: unknown, field = ''): unknown {
  if (Array.isArray(expected)) return expected.map((item) => createMatcher(item));
  if (typeof expected === 'object' && expected !== null) {
    const fields = Object.entries(expected).map(([name, item]) => [
      name,
      createMatcher(item, name),
    ]);
    return expect.objectContaining(Object.fromEntries(fields) as Record<string, unknown>);
  }
  const free = FREE[field];
  if (free?.test(String(expected))) return expect.stringMatching(free);
  const isShortened = typeof expected === 'string' && expected.includes('…');
  return isShortened ? expect.stringMatching(createPattern(expected)) : expected;
}

/** Finds the error code, if the sample is an error response. */
export function findErrorCode({ text }: Fence): string | undefined {
  const body = JSON.parse(text) as { code?: unknown };
  return typeof body.code === 'string' && /^[a-z_]+$/.test(body.code) ? body.code : undefined;
}

/** Parses lines of `Name: value`; … stands for anything. */
export function parseHeaders({ text }: Fence): [string, RegExp][] {
  return text.split('\n').map((line) => {
    const [name = '', value = ''] = line.split(/: (.*)/);
    return [name.toLowerCase(), createPattern(value)];
  });
}

/** Parses lines of output; … stands for anything. */
export function parseLines({ text }: Fence): RegExp[] {
  return text.split('\n').map(createPattern);
}

function createPattern(text: string): RegExp {
  const quoted = text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`^${quoted.replaceAll('…', '.+')}$`);
}

export type SampleRequest = { method: string; path: string; body: unknown };

/** Finds the requests of a sample in curl or with the function `send`, whose paths begin below the store. */
export function findRequests({ language, text }: Fence): SampleRequest[] {
  if (language === 'sh') {
    return text.split(/^(?=curl )/m).map((command) => {
      const path = /"\$INKPAD_URL\/api\/v1\/accounts\/1([^"]*)"/.exec(command)?.[1] ?? '';
      const body = /-d '([^']*)'/.exec(command)?.[1];
      const method = / -X ([A-Z]+)/.exec(command)?.[1] ?? (body === undefined ? 'GET' : 'POST');
      return { method, path, body: parseBody(body) };
    });
  }
  const calls = text.matchAll(/send\("([A-Z]+)", "([^"]*)"(?:, (?:"""([^]*?)"""|`([^`]*)`))?/gi);
  return [...calls].map(([, method = '', path = '', java, go]) => ({
    method,
    path,
    body: parseBody(java ?? go),
  }));
}

function parseBody(text: string | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text);
}
