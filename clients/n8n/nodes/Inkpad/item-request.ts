import { createHash, randomUUID } from 'node:crypto';
import {
  NodeOperationError,
  type IDataObject,
  type IExecuteFunctions,
  type IHttpRequestMethods,
} from 'n8n-workflow';
import { readList, sendRequest, type ApiResponse } from '../api-client';
import { toApiFields, toApiTime } from './api-fields';

/** Reads the parameters of one input item, and sends the requests for it. */
export class ItemRequest {
  constructor(
    private readonly context: IExecuteFunctions,
    readonly itemIndex: number,
  ) {}

  getText(name: string): string {
    return String(this.context.getNodeParameter(name, this.itemIndex, '')).trim();
  }

  getNumber(name: string): number {
    return Number(this.context.getNodeParameter(name, this.itemIndex));
  }

  /** Reads a time. The picker's has no time zone: it means that of the workflow. */
  getTime(name: string): string {
    return toApiTime(
      this.context.getNodeParameter(name, this.itemIndex, ''),
      this.context.getTimezone(),
    );
  }

  /** Reads a collection as fields of the API: snake_case, without those left blank. */
  getFields(name: string): IDataObject {
    const collection = this.context.getNodeParameter(name, this.itemIndex, {}) as IDataObject;
    return toApiFields(collection, this.context.getTimezone());
  }

  /** Asserts that an external id and its source come together: one without the other names nobody. */
  assertWholeReference(source: unknown, externalId: unknown): void {
    if ((source === undefined) === (externalId === undefined)) return;
    throw new NodeOperationError(
      this.context.getNode(),
      externalId === undefined
        ? 'The external source has no external ID'
        : 'The external ID has no external source',
      { description: 'Fill in both, or neither.', itemIndex: this.itemIndex },
    );
  }

  /** Reads an id as a part of a path. */
  getPathId(name: string): string {
    return encodeURIComponent(this.getText(name));
  }

  async get(path: string, query: IDataObject = {}): Promise<IDataObject> {
    const { body } = await this.send('GET', path, { query });
    return body as IDataObject;
  }

  /** Reads a list, all of it or up to the limit that the item gives. */
  async list(path: string, query: IDataObject, pageSize: string): Promise<IDataObject[]> {
    const shouldReturnAll = this.context.getNodeParameter('returnAll', this.itemIndex, false);
    const limit = shouldReturnAll ? Number.POSITIVE_INFINITY : this.getNumber('limit');
    const request = {
      path: this.toStorePath(path),
      query: { ...query, [pageSize]: Math.min(limit, 100) },
      itemIndex: this.itemIndex,
    };
    return readList(this.context, request, limit);
  }

  /** Sends a write, under the key of the item or one that stays the same when n8n tries the node again. */
  async post(
    path: string,
    body: IDataObject,
    { key, query = {} }: { key?: unknown; query?: IDataObject } = {},
  ): Promise<ApiResponse> {
    const idempotencyKey = typeof key === 'string' && key !== '' ? key : this.createKey();
    return this.send('POST', path, { body, query, idempotencyKey });
  }

  private send(
    method: IHttpRequestMethods,
    path: string,
    rest: { query?: IDataObject; body?: IDataObject; idempotencyKey?: string },
  ): Promise<ApiResponse> {
    const request = { method, path: this.toStorePath(path), itemIndex: this.itemIndex, ...rest };
    return sendRequest(this.context, request);
  }

  private toStorePath(path: string): string {
    return `/accounts/${this.getPathId('accountId')}${path}`;
  }

  /** An agent may call a tool twice on purpose within one execution, and no two of its calls can be told apart. */
  private createKey(): string {
    if (this.context.isToolExecution()) return `n8n-${randomUUID()}`;
    const { $runIndex: runIndex } = this.context.getWorkflowDataProxy(this.itemIndex);
    const parts = [
      this.context.getInstanceId(),
      this.context.getExecutionId(),
      this.context.getNode().id,
      runIndex,
      this.itemIndex,
    ];
    return `n8n-${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;
  }
}
