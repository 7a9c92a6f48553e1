import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { CommandContext } from '#kernel/aggregate.js';
import { RepeatedAudits } from '#event-store/commands/repeated-audits.service.js';
import { getAddressKey } from '#http/rate-limit.js';
import { renderHeader, renderRecords, type ExportFile } from './export-file.js';
import { ExportPlaces } from './export-places.service.js';
import { ExportedRecords } from './exported-records.service.js';

/** Exports all records of a kind. */
@Injectable()
export class StoreExport {
  constructor(
    private readonly places: ExportPlaces,
    private readonly records: ExportedRecords,
    private readonly repeated: RepeatedAudits,
  ) {}

  /**
   * Creates the parts of a file. The first page is read before, so that an error still becomes a response; each later one
   * when the client has taken the one before.
   * @throws UnavailableError
   */
  async create(
    by: CommandContext,
    file: ExportFile,
    reply: FastifyReply,
  ): Promise<AsyncGenerator<string>> {
    const { accountId } = by;
    this.places.take(accountId, reply);
    const readPage = await this.places.read(accountId, () =>
      this.records.open(file.kind, accountId),
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
