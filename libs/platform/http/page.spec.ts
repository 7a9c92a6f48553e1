import { describe, expect, it } from '@jest/globals';
import type { FastifyReply } from 'fastify';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { readQuery } from './dtos.js';
import {
  addLink,
  decodeCursor,
  encodeCursor,
  renderNextLink,
  PageQuery,
  PageReader,
  type PageRange,
} from './page.js';

const KEY = Buffer.alloc(32, 1);
const LIST = '/api/v1/accounts/7/orders';

describe('decodeCursor', () => {
  const cursor = encodeCursor(KEY, LIST, [3, 0, 12]);

  it('returns the encoded position', () => {
    expect(decodeCursor(KEY, LIST, cursor)).toEqual([3, 0, 12]);
    expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
  });

  it.each([
    ['of another list', KEY, '/api/v1/accounts/7/items', cursor],
    ['of another account', KEY, '/api/v1/accounts/8/orders', cursor],
    ['of another service', Buffer.alloc(32, 2), LIST, cursor],
    ['that is cut short', KEY, LIST, cursor.slice(0, -1)],
    ['that is cut to 24 characters', KEY, LIST, cursor.slice(0, 24)],
    ['with a character appended', KEY, LIST, `${cursor}!`],
    ['that was changed', KEY, LIST, (cursor.startsWith('A') ? 'B' : 'A') + cursor.slice(1)],
    ['that was made up', KEY, LIST, Buffer.from('[3,0,12]').toString('base64url')],
    ['that is empty', KEY, LIST, ''],
  ])('refuses a cursor %s', (_what, key, list, cursor) => {
    expect(decodeCursor(key, list, cursor)).toBeUndefined();
  });
});

describe('renderNextLink', () => {
  it('renders an absolute URL and keeps the other parameters', () => {
    expect(
      renderNextLink('https://orders.example/in', `${LIST}?scope=all&limit=2&cursor=x`, {
        cursor: 'NEXT',
      }),
    ).toBe(`<https://orders.example/in${LIST}?scope=all&limit=2&cursor=NEXT>; rel="next"`);
    expect(renderNextLink('https://orders.example', LIST, { cursor: 'NEXT' })).toBe(
      `<https://orders.example${LIST}?cursor=NEXT>; rel="next"`,
    );
  });
});

describe('addLink', () => {
  it('keeps the other links', () => {
    const headers = new Map<string, unknown>();
    const reply = {
      getHeader: (name: string) => headers.get(name),
      header: (name: string, value: unknown) => headers.set(name, value),
    } as unknown as FastifyReply;
    addLink(reply, '<https://orders.example/policy>; rel="deprecation"');
    expect(headers.get('link')).toBe('<https://orders.example/policy>; rel="deprecation"');
    addLink(reply, '</next>; rel="next"');
    expect(headers.get('link')).toBe(
      '<https://orders.example/policy>; rel="deprecation", </next>; rel="next"',
    );
  });
});

describe('Pages', () => {
  const numbers = [1, 2, 3, 4, 5];
  const find = async ({ after, limit }: PageRange) =>
    numbers.filter((n) => n > (after?.[0] ?? 0)).slice(0, limit);
  const getPage = async (url: string) => {
    const links: string[] = [];
    const query = readQuery(
      PageQuery,
      Object.fromEntries(new URL(url, 'https://orders.example').searchParams),
    );
    const pages = new PageReader(
      KEY,
      'https://orders.example',
      url,
      (link) => links.push(link),
      async () => undefined,
    );
    return { page: await pages.getPage(query, find, (n) => [n]), link: links.join() };
  };
  const parseNextUrl = (link: string) => /<https:\/\/orders\.example(.+)>/.exec(link)?.[1] ?? '';

  it('returns the whole list without parameters', async () => {
    expect(await getPage(LIST)).toEqual({ page: numbers, link: '' });
  });

  it('links each page to the next until the end', async () => {
    const first = await getPage(`${LIST}?limit=2`);
    const second = await getPage(parseNextUrl(first.link));
    const third = await getPage(parseNextUrl(second.link));
    expect([first.page, second.page, third.page]).toEqual([[1, 2], [3, 4], [5]]);
    expect(third.link).toBe('');
    expect((await getPage(`${LIST}?limit=5`)).link).toBe('');
  });

  it('returns the rest of the list with a cursor alone', async () => {
    const { link } = await getPage(`${LIST}/?limit=2`);
    const rest = await getPage(parseNextUrl(link).replace('limit=2&', ''));
    expect(rest).toEqual({ page: [3, 4, 5], link: '' });
  });

  it('refuses a cursor of another list', async () => {
    const { link } = await getPage(`/api/v1/accounts/8/orders?limit=2`);
    await expect(getPage(parseNextUrl(link).replace('/8/', '/7/'))).rejects.toThrow(
      InvalidFieldsError,
    );
  });
});
