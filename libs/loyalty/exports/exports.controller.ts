import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { Readable } from 'node:stream';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { Context, type AuthenticatedRequest } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { createRecordLookup } from '#platform/http/record.js';
import { BYTE_ORDER_MARK } from '#platform/kernel/csv.js';
import { EXPORT_FILES, findExportFile, renderHeader, renderRecords } from './export-file.js';
import { EVERYTHING, StoreExport } from './store-export.service.js';

const TAG = 'Exports';
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
    readsMuch: true,
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
  show(
    @Context() context: CommandContext,
    @Param('file') name: string,
    @Req() request: AuthenticatedRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Readable> {
    return this.exports.open(context, { file: getFile(name), range: EVERYTHING }, request, reply);
  }
}

/** @throws NotFoundError */
function getFile(name: string) {
  const file = findExportFile(name);
  if (!file) throw new NotFoundError('Export');
  return file;
}
