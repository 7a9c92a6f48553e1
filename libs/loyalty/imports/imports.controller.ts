import { Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { CatalogueError } from '#platform/kernel/errors.js';
import { findTypeParameter } from '#platform/http/content-type.js';
import { Context } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { getFile, TakesFile } from '#platform/http/body-kinds.js';
import { negotiateMediaType } from '#platform/http/negotiation.js';
import { Paged, PageQuery, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { createRecordLookup } from '#platform/http/record.js';
import { DiscardImport } from './draft-import.commands.js';
import { CreateImport, StartImport, UndoImport } from './import.commands.js';
import {
  ImportJson,
  ImportQuery,
  ImportRowJson,
  ImportRowListQuery,
  toImportJson,
} from './import.dto.js';
import { renderRowsAsCsv } from './import-rows-csv.js';
import { ImportsService } from './imports.service.js';
import { findEncoding } from './text-encoding.js';

const MAX_FILE_BYTES = 20 * 1024 * 1024;
const CSV = 'text/csv';

const IMPORT = createRecordLookup(ImportsService, (imports, accountId, { id = '' }) =>
  imports.get(accountId, parsePathId(id)),
);

@DeclaresTag({
  name: 'Imports',
  order: 55,
  description: 'Files of customers, with the stamps that they bring along.',
})
@Controller('/api/v1/accounts/:account_id/imports')
export class ImportsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly imports: ImportsService,
  ) {}

  @Get()
  @Endpoint({
    id: 'listImports',
    tag: 'Imports',
    summary: 'List imports',
    description: 'The imports of a store, newest first.',
    path: ['account_id'],
    status: 200,
    response: [ImportJson],
    errors: [404, 422],
  })
  list(
    @Context() { accountId }: CommandContext,
    @Query() page: PageQuery,
    @Paged() pages: PageReader,
  ): Promise<ImportJson[]> {
    return pages.getPage(
      page,
      (range) => this.imports.list(accountId, range),
      ({ id }) => [id],
    );
  }

  @Get(':id')
  @Endpoint({
    id: 'getImport',
    tag: 'Imports',
    summary: 'Show an import',
    description: 'Its state, and how many of its rows are done.',
    path: ['account_id', 'id'],
    status: 200,
    response: ImportJson,
    errors: [404],
    record: IMPORT,
  })
  async show(
    @Context() { accountId }: CommandContext,
    @Param('id') id: string,
  ): Promise<ImportJson> {
    return toImportJson(await this.imports.get(accountId, parsePathId(id)));
  }

  @Post()
  @TakesFile(MAX_FILE_BYTES)
  @Endpoint({
    id: 'createImport',
    tag: 'Imports',
    summary: 'Import a file of customers',
    description:
      'Each row updates the customer who has its external id, e-mail address or phone number, or creates one. The rows are checked first, then applied; with dry_run the import waits for a start in between. The same file again changes nothing.',
    path: ['account_id'],
    file: 'The file itself, at most 20 MiB and 50,000 rows: CSV in UTF-8, UTF-16 or Windows-1252, separated by commas, semicolons or tabs, or NDJSON. The charset of the media type may name any other encoding of the web. Its own media type is accepted too: text/csv or application/x-ndjson.',
    status: 202,
    response: ImportJson,
    errors: [404],
    codes: ['limit_reached', 'quota_exceeded'],
  })
  create(
    @Context() context: CommandContext,
    @Query() options: ImportQuery,
    @Req() request: FastifyRequest,
  ): Promise<ImportJson> {
    const { type, bytes } = getFile(request);
    const format = type === CSV ? 'csv' : 'ndjson';
    const encoding = readEncoding(findTypeParameter(request.headers['content-type'], 'charset'));
    return this.commands.execute(new CreateImport(context, { bytes, format, encoding }, options));
  }

  @Get(':id/rows')
  @Endpoint({
    id: 'listImportRows',
    readsMuch: true,
    tag: 'Imports',
    summary: 'List the rows of an import',
    description:
      'In the order of the file, each with its errors. With Accept: text/csv, all of them as a file that can be corrected and imported again.',
    path: ['account_id', 'id'],
    status: 200,
    response: [ImportRowJson],
    alternative: CSV,
    errors: [404, 422],
    record: IMPORT,
  })
  async listRows(
    @Context() { accountId }: CommandContext,
    @Param('id') path: string,
    @Query() { status, ...page }: ImportRowListQuery,
    @Paged() pages: PageReader,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ImportRowJson[] | Buffer> {
    const current = await this.imports.get(accountId, parsePathId(path));
    if (negotiateMediaType(request, reply, ['application/json', CSV]) === CSV) {
      const rows = await this.imports.listAllRows(current, status);
      void reply
        .type(`${CSV}; charset=utf-8`)
        .header('content-disposition', `attachment; filename="import-${current.id}.csv"`);
      return Buffer.from(renderRowsAsCsv(current, rows));
    }
    return pages.getPage(
      page,
      (range) => this.imports.listRows(current, status, range),
      ({ row }) => [row],
    );
  }

  @Post(':id/start')
  @Endpoint({
    id: 'startImport',
    tag: 'Imports',
    summary: 'Start an import that was checked',
    description:
      'Its rows are applied, except those with errors. Starting it again changes nothing.',
    path: ['account_id', 'id'],
    status: 200,
    response: ImportJson,
    errors: [404],
    codes: ['limit_reached', 'quota_exceeded'],
    record: IMPORT,
  })
  start(@Context() context: CommandContext, @Param('id') id: string): Promise<ImportJson> {
    return this.commands.execute(new StartImport(context, parsePathId(id)));
  }

  @Post(':id/discard')
  @Endpoint({
    id: 'discardImport',
    tag: 'Imports',
    summary: 'Discard an import that waits for a start',
    description:
      'Deletes its rows, and ends it in the state failed. Nothing was imported. Discarding it again changes nothing.',
    path: ['account_id', 'id'],
    status: 200,
    response: ImportJson,
    errors: [404],
    record: IMPORT,
  })
  discard(@Context() context: CommandContext, @Param('id') id: string): Promise<ImportJson> {
    return this.commands.execute(new DiscardImport(context, parsePathId(id)));
  }

  @Post(':id/undo')
  @Endpoint({
    id: 'undoImport',
    tag: 'Imports',
    summary: 'Undo an import',
    description:
      'Erases the customers whom it created, takes its stamps back, and restores what it changed. Rows that were used since stay as they are, and are in the state refused. Possible for 30 days.',
    path: ['account_id', 'id'],
    status: 200,
    response: ImportJson,
    errors: [404],
    record: IMPORT,
  })
  undo(@Context() context: CommandContext, @Param('id') id: string): Promise<ImportJson> {
    return this.commands.execute(new UndoImport(context, parsePathId(id)));
  }
}

/** @throws CatalogueError for a charset that is not known */
function readEncoding(charset: string | undefined): string | null {
  if (charset === undefined) return null;
  const encoding = findEncoding(charset);
  if (encoding === undefined) {
    throw new CatalogueError(
      'unsupported_media_type',
      `The charset ${charset.slice(0, 40)} is not known`,
      {
        resolution:
          'Send the file in UTF-8, or name its encoding as web pages do, such as windows-1250.',
      },
    );
  }
  return encoding;
}
