import { get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { eventually } from '../jest/eventually.js';

export type StreamEvent = { event: string; id: string | null; data: string };

/** Reads server-sent events as a browser does, as far as the tests need it. */
export class EventStream {
  readonly events: StreamEvent[] = [];
  ended = false;
  private retry: number | undefined;

  private constructor(private readonly response: IncomingMessage) {}

  static async open(url: string, headers: Record<string, string> = {}): Promise<EventStream> {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      get(url, { headers, agent: false }, resolve).on('error', reject);
    });
    const stream = new EventStream(response);
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      const blocks = (text + chunk).split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) stream.take(block);
    });
    // One that breaks off ends too.
    response.on('error', () => undefined);
    response.on('close', () => (stream.ended = true));
    return stream;
  }

  get status(): number | undefined {
    return this.response.statusCode;
  }

  get headers(): IncomingHttpHeaders {
    return this.response.headers;
  }

  get retryMs(): number | undefined {
    return this.retry;
  }

  /** The tags of the changes so far. */
  get changes(): number[] {
    return this.events.filter(({ event }) => event === 'changed').map(({ id }) => Number(id));
  }

  /** Waits for the next change after so many. */
  async changed(after = 0): Promise<number> {
    const all = await eventually(
      () => this.changes,
      ({ length }) => length > after,
    );
    return all.at(-1) ?? 0;
  }

  close(): void {
    this.response.destroy();
  }

  private take(block: string): void {
    const fields = new Map(
      block.split('\n').map((line) => {
        const [, name = '', value = ''] = /^([a-z]*):? ?(.*)$/.exec(line) ?? [];
        return [name, value];
      }),
    );
    if (fields.has('retry')) this.retry = Number(fields.get('retry'));
    if (!fields.has('data')) return;
    this.events.push({
      event: fields.get('event') ?? 'message',
      id: fields.get('id') ?? null,
      data: fields.get('data') ?? '',
    });
  }
}
