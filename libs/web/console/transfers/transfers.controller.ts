import { Controller, Header, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { NotFoundError, type FieldErrors } from '#platform/kernel/errors.js';
import { findMomentOfDay } from '#platform/kernel/zoned-time.js';
import type { AuthenticatedRequest } from '#platform/http/caller.js';
import type { Translations, Localization } from '#translations/translations.js';
import { findExportFile } from '#loyalty/exports/export-file.js';
import { EVERYTHING, StoreExport } from '#loyalty/exports/store-export.service.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  GetPage,
  Localized,
} from '#web/pages/current-user.js';
import { isDay } from '#web/pages/local-time.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { localizeRequest } from '#web/pages/localize.js';
import type { Readable } from 'node:stream';
import type { PageResult } from '#web/pages/page-results.js';
import { findFlashMessage, parseCursor } from '#web/pages/page-query.js';
import { SAMPLE_FILE } from './import-page.js';
import { TransferPages } from './transfer-pages.service.js';

type ExportQuery = { kind?: unknown; format?: unknown; from?: unknown; to?: unknown };

/** The kinds of records that have a time. */
const TIMED = new Set(['history', 'redemptions']);

/** Shows where files come in and go out, and sends the exports. */
@Controller('app/stores/:account_id/transfers')
export class TransfersController {
  constructor(
    private readonly transfers: TransferPages,
    private readonly exports: StoreExport,
    private readonly times: StoreTimes,
  ) {}

  @GetPage('listImports')
  async show(
    @CurrentStore() store: EnteredStore,
    @Query('after') after: unknown,
    @Query('done') done: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { transfers: t } = localization.t;
    return this.transfers.show(localization, store, {
      after: parseCursor(after),
      flash: findFlashMessage(done, t.done),
    });
  }

  @GetPage('createImport', 'sample.csv')
  @Header('content-type', 'text/csv; charset=utf-8')
  @Header('content-disposition', 'attachment; filename="customers.csv"')
  @Header('cache-control', 'no-store')
  showSample(): string {
    return SAMPLE_FILE;
  }

  @GetPage('exportRecords', 'export')
  async export(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Query() query: ExportQuery,
    @Req() request: AuthenticatedRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult | Readable> {
    const [kind, format, from, to] = [query.kind, query.format, query.from, query.to].map((value) =>
      typeof value === 'string' ? value.trim() : '',
    );
    const file = findExportFile(`${kind}.${format === '' ? 'csv' : format}`);
    if (!file) throw new NotFoundError('Export');
    const localization = localizeRequest(request);
    const { transfers: t } = localization.t;
    const range = { from: from ?? '', to: to ?? '' };
    const errors = TIMED.has(file.kind) ? findRangeErrors(range, t) : {};
    if (Object.keys(errors).length > 0) {
      const typed = { errors: { fields: errors, text: '' }, range: { ...range, kind: file.kind } };
      return this.transfers.show(localization, store, typed);
    }
    const moments = TIMED.has(file.kind) ? await this.findMoments(store, range) : EVERYTHING;
    void reply.header('cache-control', 'no-store');
    return this.exports.open(context, { file, range: moments }, request, reply);
  }

  /** Finds the times of whole days, in the time zone of the store. */
  private async findMoments({ id }: EnteredStore, { from, to }: { from: string; to: string }) {
    const timeZone = await this.times.getTimeZone(id);
    const find = (day: string, moment: 'start' | 'next') =>
      day === '' ? null : new Date(findMomentOfDay(day, moment, timeZone));
    return { from: find(from, 'start'), to: find(to, 'next') };
  }
}

function findRangeErrors(
  { from, to }: { from: string; to: string },
  t: Translations['transfers'],
): FieldErrors {
  const errors: FieldErrors = {};
  if (from !== '' && !isDay(from)) errors['from'] = [t.rangeInvalid];
  if (to !== '' && !isDay(to)) errors['to'] = [t.rangeInvalid];
  else if (to !== '' && from > to) errors['to'] = [t.rangeReversed];
  return errors;
}
