import { Injectable, Logger } from '@nestjs/common';
import type * as McpSdk from '@modelcontextprotocol/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import {
  CatalogueError,
  ForbiddenError,
  getErrorMessage,
  InvalidFieldsError,
} from '#platform/kernel/errors.js';
import { WORKS_IN_MAINTENANCE } from '#platform/http/route-access.js';
import { readBody } from '#platform/http/dtos.js';
import { VERSION } from '#platform/kernel/version.js';
import { negotiateMediaType } from '#platform/http/negotiation.js';
import { CreateCardDto } from '#loyalty/cards/card.dto.js';
import { StripRenderer } from '#outbound/card-images/strip-renderer.service.js';
import { readOpenApiDocument } from '#web/docs/openapi-document.js';
import {
  countShownStamps,
  createCardDesign,
  describePicture,
  type CardJson,
} from './card-picture.js';
import {
  buildRequest,
  convertArguments,
  isDryRun,
  type ApiRequest,
  type ToolArguments,
} from './tool-request.js';
import {
  createErrorResult,
  isOnlyDryRunRefused,
  toToolResult,
  type ApiResponse,
  type Picture,
  type ToolResult,
} from './tool-result.js';
import { describeTool, OUTPUT_SCHEMA, type JsonSchema, type ToolOperation } from './tool-schema.js';
import { INSTRUCTIONS, TOOLS } from './tools.js';
import { ISSUES } from '#translations/issues.js';

const PATH = '/mcp';
const JSON_TYPE = 'application/json';
/** As in the API. It is read only once the token is known. */
const STREAM_TYPE = 'text/event-stream';
const BODY_LIMIT = 1024 * 1024;
/** Only the oldest of the supported revisions has batches. Each of its calls is counted by itself. */
const MAX_BATCH = 10;
/** Headers of the API that hold for the response to its caller as well. */
const PASSED_ON = [
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'ratelimit-policy',
  'retry-after',
  'deprecation',
  'sunset',
];
/** Headers of the caller that its requests to the API keep. */
const FORWARDED = [
  'authorization',
  'x-forwarded-for',
  'user-agent',
  'traceparent',
  'tracestate',
] as const;

type TokenJson = { read_only: boolean };
type AdmittedRequest = FastifyRequest & { mcpToken?: TokenJson; isStreamed?: boolean };
type CallApi = (request: ApiRequest) => Promise<ApiResponse>;

type Sdk = typeof McpSdk;
type InputSchema = ReturnType<Sdk['fromJsonSchema']>;
type RegisteredTool = ToolOperation & { input: InputSchema };
type Loaded = { sdk: Sdk; tools: RegisteredTool[]; output: InputSchema };

/**
 * Serves the Model Context Protocol (MCP-01 to MCP-21). Each tool calls the API within the process as the caller would,
 * with the caller's token: request guard, limits, roles, audit and errors are the API's own. Stateless: any process
 * serves any request.
 */
@Injectable()
export class McpEndpoint {
  private readonly log = new Logger('mcp');
  private loaded: Promise<Loaded> | undefined;

  constructor(
    private readonly config: Config,
    private readonly renderer: StripRenderer,
  ) {}

  /** Adds the route. Call it after the hooks that every request passes. */
  install(server: FastifyInstance): void {
    server.route({
      method: 'POST',
      url: PATH,
      // The request for the token is counted instead, against the token. In maintenance the API itself refuses writes.
      config: { throttle: false, bodyLimit: BODY_LIMIT, ...WORKS_IN_MAINTENANCE },
      onRequest: (request, reply) => this.admit(server, request, reply),
      handler: (request, reply) => this.serve(server, request, reply),
    });
  }

  /**
   * Reads what the token may do, before any byte of the body. A token that the API refuses gets the response of the API.
   * @throws ForbiddenError for a page of another site, whose host name may lead here (DNS rebinding)
   * @throws CatalogueError for a client that takes neither JSON nor a stream
   */
  private async admit(
    server: FastifyInstance,
    request: AdmittedRequest,
    reply: FastifyReply,
  ): Promise<void> {
    reply.header('cache-control', 'no-store');
    const { status, headers, body } = await createApiCaller(
      server,
      request,
    )({
      method: 'GET',
      url: '/api/v1/token',
      headers: {},
    });
    for (const name of PASSED_ON) {
      if (headers[name] !== undefined) reply.header(name, headers[name]);
    }
    this.assertOwnOrigin(request);
    if (status !== 200) {
      if (status === 401) reply.header('www-authenticate', 'Bearer realm="Inkpad"');
      await reply.status(status).send(body);
      return;
    }
    // Who takes both gets JSON, whatever they prefer.
    request.isStreamed = negotiateMediaType(request, reply, [JSON_TYPE]) === undefined;
    if (request.isStreamed && negotiateMediaType(request, reply, [STREAM_TYPE]) === undefined) {
      throw new CatalogueError('not_acceptable');
    }
    request.mcpToken = body as TokenJson;
  }

  private assertOwnOrigin({ headers: { origin } }: FastifyRequest): void {
    const { corsOrigins, publicUrl } = this.config;
    if (origin === undefined || origin === new URL(publicUrl).origin) return;
    if (corsOrigins.includes(origin) || corsOrigins.includes('*')) return;
    throw new ForbiddenError(
      'Pages of other sites may not call this address',
      'Call it from a program, or let the operator add the origin to CORS_ORIGINS.',
    );
  }

  private async serve(
    server: FastifyInstance,
    request: AdmittedRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const { body, headers, mcpToken } = request;
    if (!mcpToken) throw new Error('no request is served without a token');
    if (Array.isArray(body) && body.length > MAX_BATCH) {
      throw new InvalidFieldsError({ base: [ISSUES.too_many_messages({ max: MAX_BATCH })] });
    }
    const loaded = await this.load();
    const callApi = createApiCaller(server, request);
    const texts = Object.entries(headers).filter(
      (header): header is [string, string] => typeof header[1] === 'string',
    );
    const response = await this.handle(
      loaded.sdk,
      new Request(`${this.config.publicUrl}${PATH}`, {
        method: 'POST',
        // The SDK wants both by name, though its response is JSON.
        headers: [...texts, ['accept', `${JSON_TYPE}, ${STREAM_TYPE}`]],
      }),
      // A request cancels no other one here, and the response to a cancelled one would never come.
      Array.isArray(body) ? body.filter((message) => !isCancellation(message)) : body,
      () => this.createServer(loaded, mcpToken, callApi),
    );
    const type = response.headers.get('content-type');
    const result = Buffer.from(await response.arrayBuffer());
    if (request.isStreamed && response.ok && result.length > 0) {
      return reply.status(response.status).type(STREAM_TYPE).send(renderStream(result.toString()));
    }
    if (type !== null) reply.header('content-type', type);
    return reply.status(response.status).send(result);
  }

  /** Lets the SDK handle a request. Its own way of serving the revisions of 2025 would stream the response. */
  private async handle(
    sdk: Sdk,
    request: Request,
    parsedBody: unknown,
    createServer: () => McpSdk.McpServer,
  ): Promise<Response> {
    if (await sdk.isLegacyRequest(request, parsedBody)) {
      const server = createServer();
      const transport = new sdk.WebStandardStreamableHTTPServerTransport({
        enableJsonResponse: true,
      });
      await server.connect(transport);
      try {
        return await transport.handleRequest(request, { parsedBody });
      } finally {
        await server.close();
      }
    }
    const handler = sdk.createMcpHandler(createServer, {
      legacy: 'reject',
      // A stream that waits for changes would never end, and nothing here changes.
      maxSubscriptions: 0,
      keepAliveMs: 0,
      onerror: (error) => this.log.debug(getErrorMessage(error)),
    });
    return handler.fetch(request, { parsedBody });
  }

  /** Creates a server for one request. A read-only token is not offered what it may not do (MCP-09). */
  private createServer(
    { sdk, tools, output }: Loaded,
    token: TokenJson,
    callApi: CallApi,
  ): McpSdk.McpServer {
    const server = new sdk.McpServer(
      { name: 'inkpad', title: 'Inkpad', version: VERSION },
      { instructions: INSTRUCTIONS, capabilities: { tools: {} } },
    );
    for (const tool of tools) {
      if (token.read_only && tool.kind !== 'read') continue;
      const { name, title, description, kind, input, isOpenWorld = false } = tool;
      const annotations = {
        title,
        readOnlyHint: kind === 'read',
        destructiveHint: kind === 'change',
        // What writes takes an idempotency key.
        idempotentHint: true,
        openWorldHint: isOpenWorld,
      };
      server.registerTool(
        name,
        { title, description, inputSchema: input, outputSchema: output, annotations },
        async (args) => this.callTool(tool, args as ToolArguments, callApi),
      );
    }
    return server;
  }

  private async callTool(
    tool: ToolOperation,
    args: ToolArguments,
    callApi: CallApi,
  ): Promise<ToolResult> {
    const request = buildRequest(tool, args);
    if (!request) return createErrorResult(['An id in the call is not one of the service.']);
    try {
      const response = await callApi(request);
      const picture = tool.hasPicture && (await this.draw(tool, args, response, callApi));
      return toToolResult(tool, args, response, { publicUrl: this.config.publicUrl, picture });
    } catch (error) {
      this.log.warn(`${tool.name}: ${getErrorMessage(error)}`);
      const advice =
        tool.kind === 'read'
          ? 'Try again.'
          : 'It is not known whether the call was carried out. Repeat it with the same idempotency_key: it then counts once.';
      return createErrorResult(['The service gave no response', advice]);
    }
  }

  /** Draws a card, or one that a dry run would create. Without its picture, the result is still complete. */
  private async draw(
    tool: ToolOperation,
    args: ToolArguments,
    response: ApiResponse,
    callApi: CallApi,
  ): Promise<Picture | undefined> {
    const isChecked = isDryRun(tool, args) && isOnlyDryRunRefused(response);
    if (response.status >= 400 && !isChecked) return undefined;
    const accountId = Number(args['account_id']);
    try {
      const card = isChecked
        ? readBody(CreateCardDto, { card: args['card'] })
        : (response.body as CardJson & { id: number });
      const rewards = 'id' in card ? await this.listRewards(accountId, card.id, callApi) : [];
      const design = createCardDesign(card, rewards);
      const image = { filled: countShownStamps(design), size: '2x' } as const;
      const png = await this.renderer.render(accountId, design, image);
      return { png, note: describePicture(design, card) };
    } catch (error) {
      this.log.warn(`a picture was left out: ${getErrorMessage(error)}`);
      return undefined;
    }
  }

  private async listRewards(accountId: number, cardId: number, callApi: CallApi) {
    const { status, body } = await callApi({
      method: 'GET',
      url: `/api/v1/accounts/${accountId}/rewards?card_id=${cardId}`,
      headers: {},
    });
    return status === 200 ? (body as { stamps_required: number; active: boolean }[]) : [];
  }

  /** Loads the SDK with the first request: most services have no assistant, and it takes some megabytes. */
  private load(): Promise<Loaded> {
    this.loaded ??= this.prepare().catch((error: unknown) => {
      this.loaded = undefined;
      throw error;
    });
    return this.loaded;
  }

  private async prepare(): Promise<Loaded> {
    const sdk = await import('@modelcontextprotocol/server');
    const document = readOpenApiDocument(this.config.publicUrl);
    const tools = TOOLS.map((tool) => {
      const described = describeTool(document, tool);
      return {
        ...described,
        input: readLeniently(sdk.fromJsonSchema(described.inputSchema), described.inputSchema),
      };
    });
    return { sdk, tools, output: sdk.fromJsonSchema(OUTPUT_SCHEMA) };
  }
}

function isCancellation(message: unknown): boolean {
  return (message as { method?: unknown } | null)?.method === 'notifications/cancelled';
}

/** Lets a schema take what the API takes: numbers and booleans as text, and null for what is left out. */
function readLeniently({ '~standard': standard }: InputSchema, schema: JsonSchema): InputSchema {
  return {
    '~standard': {
      ...standard,
      validate: (value) => {
        const unknown = findUnknownArguments(schema, value);
        if (unknown.length > 0) return { issues: unknown };
        return standard.validate(convertArguments(schema, value));
      },
    },
  };
}

/** Names the arguments that a tool does not take, which the SDK's own message does not. */
function findUnknownArguments(schema: JsonSchema, value: unknown): { message: string }[] {
  const properties = Object.keys((schema['properties'] ?? {}) as JsonSchema);
  return Object.keys(Object(value) as object)
    .filter((name) => !properties.includes(name))
    .map((name) => ({
      message: `${JSON.stringify(name.slice(0, 64))} is not an argument of this tool, which takes ${properties.join(', ')}`,
    }));
}

/** Returns a function that calls the API as the sender of a request, from the same address and under the same id. */
function createApiCaller(server: FastifyInstance, caller: FastifyRequest): CallApi {
  const { raw, id } = caller;
  const identity = Object.fromEntries(
    FORWARDED.flatMap((name) => {
      const value = caller.headers[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  return async ({ method, url, headers, body }) => {
    const response = await server.inject({
      method,
      url,
      headers: { ...identity, 'x-request-id': id, accept: 'application/json', ...headers },
      ...(body && { payload: body }),
      remoteAddress: raw.socket.remoteAddress ?? '',
    });
    return {
      status: response.statusCode,
      headers: response.headers as Record<string, string | undefined>,
      body: response.payload === '' ? undefined : response.json<unknown>(),
    };
  };
}

/**
 * Renders the messages of a response as a stream that ends with the last one (Streamable HTTP, Sending Messages to the
 * Server), for a client that takes no JSON.
 */
function renderStream(json: string): string {
  const result: unknown = JSON.parse(json);
  const messages: unknown[] = Array.isArray(result) ? result : [result];
  return messages.map((message) => `event: message\ndata: ${JSON.stringify(message)}\n\n`).join('');
}
