import { createServer } from 'node:http';
import { createRequire } from 'node:module';

/** Runs the nodes as n8n does, with the functions of n8n that they use. */
const require = createRequire(import.meta.url);
const { Inkpad } = require('../dist/nodes/Inkpad/Inkpad.node.js');
const { InkpadTrigger } = require('../dist/nodes/InkpadTrigger/InkpadTrigger.node.js');

/**
 * @param credentials `{ baseUrl, token }`
 * @param settings values that differ from the usual ones
 */
function createContext(credentials, parameters, settings = {}) {
  const readParameter = (name, ...rest) => {
    const value = parameters[name] ?? rest.at(-1);
    if (value === undefined || typeof value === 'number') return parameters[name];
    return value;
  };
  return {
    getNode: () => ({ id: 'node-1', name: 'Inkpad', type: 'inkpad', typeVersion: 1 }),
    getNodeParameter: readParameter,
    getCurrentNodeParameter: readParameter,
    getCredentials: () => Promise.resolve(credentials),
    getTimezone: () => 'Europe/Berlin',
    getInstanceId: () => 'instance-1',
    getExecutionId: () => settings.executionId ?? 'execution-1',
    getWorkflowDataProxy: () => ({ $runIndex: settings.runIndex ?? 0 }),
    getWorkflow: () => ({ id: '1', name: 'Till' }),
    isToolExecution: () => settings.isTool ?? false,
    continueOnFail: () => settings.continueOnFail ?? false,
    getInputData: () => settings.items ?? [{ json: {} }],
    helpers: {
      async httpRequestWithAuthentication(type, { method, url, qs = {}, body, headers }) {
        const address = new URL(url);
        for (const [name, value] of Object.entries(qs)) address.searchParams.set(name, value);
        const response = await fetch(address, {
          method,
          headers: {
            ...headers,
            authorization: `Bearer ${credentials.token}`,
            ...(body ? { 'content-type': 'application/json' } : {}),
          },
          ...(body ? { body: JSON.stringify(body) } : {}),
        });
        const text = await response.text();
        const isJson = text !== '' && response.headers.get('content-type')?.includes('json');
        return {
          statusCode: response.status,
          headers: Object.fromEntries(response.headers),
          body: isJson ? JSON.parse(text) : text,
        };
      },
      returnJsonArray: (elements) => elements.map((json) => ({ json })),
    },
  };
}

/** Executes the node Inkpad once. @returns the JSON of the items that it outputs */
export async function executeNode(credentials, parameters, settings) {
  const context = createContext(credentials, parameters, settings);
  const [output] = await new Inkpad().execute.call(context);
  return output.map(({ json }) => json);
}

/** Loads a list of options for the editor. */
export function loadOptions(credentials, method, parameters = {}) {
  const context = createContext(credentials, parameters);
  return new Inkpad().methods.loadOptions[method].call(context);
}

/** A workflow that begins with the node Inkpad Trigger. */
export class TriggerWorkflow {
  /** The JSON of each item that has started the workflow. */
  outputs = [];
  staticData = {};
  node = new InkpadTrigger();
  server = createServer((request, response) => this.receive(request, response));

  constructor(credentials, parameters) {
    this.credentials = credentials;
    this.parameters = { output: 'envelope', options: {}, ...parameters };
  }

  async activate() {
    if (!this.server.listening) {
      await new Promise((listening) => this.server.listen(0, '127.0.0.1', listening));
    }
    const { checkExists, create } = this.node.webhookMethods.default;
    const exists = await checkExists.call(this.context());
    if (!exists) await create.call(this.context());
    return exists;
  }

  deactivate() {
    return this.node.webhookMethods.default.delete.call(this.context());
  }

  close() {
    this.server.close().closeAllConnections();
  }

  /** Where n8n says that it is, which may be written otherwise than the API stores it. */
  publicUrl = undefined;

  get url() {
    return this.publicUrl ?? `http://127.0.0.1:${this.server.address().port}/webhook/1`;
  }

  context() {
    return {
      ...createContext(this.credentials, this.parameters),
      getWorkflowStaticData: () => this.staticData,
      getNodeWebhookUrl: () => this.url,
    };
  }

  async receive(request, response) {
    const rawBody = Buffer.concat(await request.toArray());
    const responseObject = {
      status: (status) => ({
        json: (body) => response.writeHead(status).end(JSON.stringify(body)),
      }),
    };
    const context = {
      ...this.context(),
      getRequestObject: () => ({ headers: request.headers, rawBody }),
      getResponseObject: () => responseObject,
    };
    const result = await this.node.webhook.call(context);
    for (const { json } of result.workflowData?.[0] ?? []) this.outputs.push(json);
    if (!result.noWebhookResponse) response.end(result.webhookResponse ?? 'Workflow got started.');
  }
}
