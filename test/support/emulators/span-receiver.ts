import http from 'node:http';
import type { AddressInfo } from 'node:net';

type Value = {
  stringValue?: string;
  intValue?: number | string;
  boolValue?: boolean;
  arrayValue?: { values: Value[] };
};
type KeyValue = { key: string; value: Value };

type Sent = {
  resourceSpans: {
    resource: { attributes: KeyValue[] };
    scopeSpans: { spans: (Omit<Span, 'service' | 'attributes'> & { attributes: KeyValue[] })[] }[];
  }[];
};

export type Span = {
  service: unknown;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  /** 2: server, 3: client. */
  kind: number;
  attributes: Record<string, unknown>;
  status: { code?: number };
};

/** Receives spans as a collector does: OTLP over HTTP, in JSON. */
export class SpanReceiver {
  readonly spans: Span[] = [];
  /** Everything received, unparsed. */
  text = '';

  private constructor(private readonly server: http.Server) {}

  static async start(): Promise<SpanReceiver> {
    const server = http.createServer();
    const receiver = new SpanReceiver(server);
    server.on('request', (request, response) => void receiver.receive(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async receive(
    request: http.IncomingMessage,
    response: http.ServerResponse,
  ): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const fits = request.url === '/v1/traces' && request.method === 'POST';
    if (fits) this.keep(Buffer.concat(chunks).toString());
    response.writeHead(fits ? 200 : 404, { 'content-type': 'application/json' }).end('{}');
  }

  private keep(text: string): void {
    this.text += text;
    for (const { resource, scopeSpans } of (JSON.parse(text) as Sent).resourceSpans) {
      const { 'service.name': service } = attributesOf(resource.attributes);
      for (const span of scopeSpans.flatMap(({ spans }) => spans)) {
        this.spans.push({ ...span, service, attributes: attributesOf(span.attributes) });
      }
    }
  }
}

function attributesOf(list: KeyValue[]): Record<string, unknown> {
  return Object.fromEntries(list.map(({ key, value }) => [key, plain(value)]));
}

function plain({ stringValue, intValue, boolValue, arrayValue }: Value): unknown {
  if (arrayValue) return arrayValue.values.map(plain);
  return stringValue ?? (intValue === undefined ? boolValue : Number(intValue));
}
