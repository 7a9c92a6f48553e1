import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { getNow } from '#kernel/clock.js';
import type { CommandContext } from '#kernel/aggregate.js';
import { NotFoundError } from '#kernel/errors.js';
import { Context, type AuthenticatedRequest } from '#http/caller.js';
import { DeclaresTag, Endpoint } from '#http/endpoint.js';
import { acceptsGzip } from '#http/negotiation.js';
import { createRecordLookup } from '#http/record.js';
import { BYTE_ORDER_MARK } from './csv.js';
import {
  EXPORT_FILES,
  findExportFile,
  FORMATS,
  renderHeader,
  renderRecords,
} from './export-file.js';
import { StoreExport } from './store-export.service.js';

const TAG = 'Exports';
/** Fast: the rows repeat themselves, so that more effort saves little. */
const GZIP_LEVEL = 3;

const EXAMPLE = {
  id: 31,
  first_name: 'Anna',
  last_name: null,
  email: 'anna@example.com',
  phone: '+4915112345678',
  birthday: null,
  stamp_count: 5,
  marketing_consent: false,
  sms_consent: false,
  external_references: [],
  metadata: {},
  created_at: '2026-03-01T12:00:00.000Z',
  updated_at: '2026-03-01T12:00:00.000Z',
  erased_at: null,
};
const renderExample = (name: string): string => {
  const file = findExportFile(name);
  if (!file) throw new Error(`${name} is no export`);
  return (renderHeader(file) + renderRecords(file, [EXAMPLE])).replace(BYTE_ORDER_MARK, '');
};

const FILE = createRecordLookup(StoreExport, async (_service, _accountId, { file = '' }) =>
  getFile(file),
);

@DeclaresTag({
  name: TAG,
  order: 77,
  description: 'All records of a store as files, for spreadsheets and other programs.',
})
@Controller('/api/v1/accounts/:account_id/exports')
export class ExportsController {
  constructor(private readonly exports: StoreExport) {}

  @Get(':file')
  @Endpoint({
    id: 'exportRecords',
    tag: TAG,
    summary: 'Export all records of a kind',
    description:
      'All of them as they were at one moment, as CSV or as one JSON object a line. Cells that a spreadsheet would run have an apostrophe in front; JSON has every text as it is. The response is sent as it is read: it is complete if the connection ended properly.',
    path: [
      'account_id',
      {
        name: 'file',
        schema: {
          type: 'string',
          enum: EXPORT_FILES.map(({ name }) => name),
          example: 'customers.csv',
        },
        description: 'What to export, and in which format.',
      },
    ],
    status: 200,
    download: {
      'text/csv': renderExample('customers.csv'),
      'application/x-ndjson': renderExample('customers.ndjson'),
    },
    errors: [404],
    record: FILE,
  })
  async show(
    @Context() context: CommandContext,
    @Param('file') name: string,
    @Req() request: AuthenticatedRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Readable> {
    const file = getFile(name);
    const startedAt = getNow();
    const parts = await this.exports.create(context, file, reply);
    const day = startedAt.toISOString().slice(0, 10);
    void reply
      .type(FORMATS[file.format])
      .header(
        'content-disposition',
        `attachment; filename="${file.kind}-${context.accountId}-${day}.${file.format}"`,
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
}

/** @throws NotFoundError */
function getFile(name: string) {
  const file = findExportFile(name);
  if (!file) throw new NotFoundError('Export');
  return file;
}
