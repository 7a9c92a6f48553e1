import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { getNow } from '#platform/kernel/clock.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { RepeatedAudits } from '#platform/event-store/commands/repeated-audits.service.js';
import { acceptsGzip } from '#platform/http/negotiation.js';
import { getAddressKey } from '#platform/http/rate-limit.js';
import { FORMATS, renderHeader, renderRecords, type ExportFile } from './export-file.js';
import { ExportPlaces } from './export-places.service.js';
import { ExportedRecords, type ExportRange } from './exported-records.service.js';

/** Fast: the rows repeat themselves, so that more effort saves little. */
const GZIP_LEVEL = 3;

export const EVERYTHING: ExportRange = { from: null, to: null };

/** Names what is exported. @property range of the history and of redemptions; other records have no time */
export type ExportRequest = { file: ExportFile; range: ExportRange };

/** Exports all records of a kind. */
@Injectable()
export class StoreExport {
  constructor(
    private readonly places: ExportPlaces,
    private readonly records: ExportedRecords,
    private readonly repeated: RepeatedAudits,
  ) {}

  /**
   * Opens a file as a download, compressed if the client accepts that.
   * @throws UnavailableError
   */
  async open(
    by: CommandContext,
    { file, range }: ExportRequest,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Readable> {
    const startedAt = getNow();
    const parts = await this.create(by, { file, range }, reply);
    const day = startedAt.toISOString().slice(0, 10);
    void reply
      .type(FORMATS[file.format])
      .header(
        'content-disposition',
        `attachment; filename="${file.kind}-${by.accountId}-${day}.${file.format}"`,
      );
    const text = Readable.from(parts, { objectMode: false });
    if (!acceptsGzip(request)) {
      // Named, so that the response is not compressed by others: Brotli takes longer than reading the records.
      void reply.header('content-encoding', 'identity');
      return text;
    }
    void reply.header('content-encoding', 'gzip');
    return pipeline(text, createGzip({ level: GZIP_LEVEL }), () => undefined);
  }

  /**
   * Creates the parts of a file. The first page is read before, so that an error still becomes a response; each later one
   * when the client has taken the one before.
   * @throws UnavailableError
   */
  private async create(
    by: CommandContext,
    { file, range }: ExportRequest,
    reply: FastifyReply,
  ): Promise<AsyncGenerator<string>> {
    const { accountId } = by;
    this.places.take(accountId, reply);
    const readPage = await this.places.read(accountId, () =>
      this.records.open(file.kind, accountId, range),
    );
    const read = (after: object | null) => this.places.read(accountId, () => readPage(after));
    const first = await read(null);
    await this.audit(by, file);
    return streamParts(file, first, read);
  }

  private async audit(by: CommandContext, file: ExportFile): Promise<void> {
    const { accountId, actor, ipAddress } = by;
    const kind = ['store export', accountId, file.name, actor.type, actor.id];
    await this.repeated.write(by, [...kind, getAddressKey(ipAddress)], (transaction, times) =>
      transaction.audit({
        accountIds: [accountId],
        type: 'store.exported',
        subject: { file: file.name, times },
      }),
    );
  }
}

type Page = { records: object[]; last: object | null };

async function* streamParts(
  file: ExportFile,
  first: Page,
  read: (after: object) => Promise<Page>,
): AsyncGenerator<string> {
  yield renderHeader(file) + renderRecords(file, first.records);
  for (let { last } = first; last !== null;) {
    const page = await read(last);
    last = page.last;
    const text = renderRecords(file, page.records);
    if (text !== '') yield text;
  }
}
