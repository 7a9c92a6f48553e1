import { Body, Controller, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { detectFileType, findUploadedFile, type Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import type { Localization } from '#translations/translations.js';
import { ChooseImportColumns, DiscardImport } from '#loyalty/imports/draft-import.commands.js';
import { CreateImport, StartImport, UndoImport } from '#loyalty/imports/import.commands.js';
import { renderRowsAsCsv } from '#loyalty/imports/import-rows-csv.js';
import { ImportsService } from '#loyalty/imports/imports.service.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
  PostUpload,
} from '#web/pages/current-user.js';
import { findFlashMessage, parsePositiveInteger } from '#web/pages/page-query.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { type PageResult, redirectTo, askToConfirm } from '#web/pages/page-results.js';
import { localizeRequest } from '#web/pages/localize.js';
import { readMapping, UPLOAD_ENCODINGS } from './import-page.js';
import { ImportPages } from './import-pages.service.js';
import { describeIssues } from './import-issues.js';
import { buildTransfersPath, TransferPages } from './transfer-pages.service.js';
import { listErrors, describeRejection, type FormErrors } from '#web/pages/form-errors.js';

const MAX_FILE_BYTES = 20 * 1024 * 1024;

/** Serves the way of an import: upload, columns, check, start, result, undo. */
@Controller('app/stores/:account_id/transfers/imports')
export class ImportPagesController {
  constructor(
    private readonly page: ImportPages,
    private readonly transfers: TransferPages,
    private readonly imports: ImportsService,
    private readonly commands: FormCommands,
    private readonly times: StoreTimes,
  ) {}

  @PostUpload('createImport', '', MAX_FILE_BYTES)
  async upload(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Body() form: Form,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const localization = localizeRequest(request);
    const { transfers: t } = localization.t;
    const { card_id: card = '' } = form;
    const bytes = findUploadedFile(request, 'file');
    const encoding = UPLOAD_ENCODINGS.find((candidate) => candidate === form['encoding']) ?? null;
    const typed = { card, encoding: encoding ?? '' };
    if (!bytes) {
      const errors = { fields: { file: [t.fileMissing] }, text: '' };
      return this.transfers.show(localization, store, { ...typed, errors });
    }
    const format = detectFileType(bytes) === 'text/csv' ? ('csv' as const) : ('ndjson' as const);
    const options = {
      card_id: parsePositiveInteger(card),
      dry_run: true,
      mapping: null,
      date_order: null,
    };
    try {
      const onlyCardId = await this.transfers.findOnlyCardId(store);
      const { id } = await this.commands.execute(
        new CreateImport(context, { bytes, format, encoding }, options, { onlyCardId }),
      );
      return redirectTo(`${buildTransfersPath(store)}/imports/${id}?done=uploaded`);
    } catch (error) {
      const errors = describeUploadErrors(error, localization);
      return this.transfers.show(localization, store, { ...typed, errors });
    }
  }

  @GetPage('getImport', ':id')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Query('done') done: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const messages = localization.t.transfers.done;
    const current = await this.imports.get(store.id, parsePathId(path));
    return this.page.show(localization, store, current, {
      flash: findFlashMessage(done, messages),
    });
  }

  @GetPage('listImportRows', ':id/rows.csv')
  async showRows(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() { t }: Localization,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const current = await this.imports.get(store.id, parsePathId(path));
    const rows = await this.imports.listAllRows(current, 'failed');
    const csv = renderRowsAsCsv(current, rows, (issues) => describeIssues(issues, t));
    await reply
      .type('text/csv; charset=utf-8')
      .header('cache-control', 'no-store')
      .header('content-disposition', `attachment; filename="import-${current.id}.csv"`)
      .send(Buffer.from(csv));
  }

  @PostForm('imports.choose_columns', ':id/columns')
  async chooseColumns(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.imports.get(store.id, parsePathId(path));
    const { card_id: card = '', date_order: order = '' } = form;
    const cardId = parsePositiveInteger(card);
    const mapping = readMapping(current.columns, form, current.cardId === null && cardId !== null);
    const choices = {
      cardId,
      mapping,
      dateOrder: order === 'dmy' || order === 'mdy' ? order : null,
    } as const;
    try {
      await this.commands.execute(new ChooseImportColumns(context, current.id, choices));
    } catch (error) {
      const columns = current.columns.map(({ name }) => ({ name, field: mapping[name] ?? null }));
      const typed = { ...current, columns, cardId: choices.cardId, dateOrder: choices.dateOrder };
      const errors = describeColumnErrors(error, localization);
      return this.page.show(localization, store, typed, { errors });
    }
    return redirectTo(`${buildTransfersPath(store)}/imports/${current.id}?done=checked`);
  }

  @PostForm('startImport', ':id/start')
  async start(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    return this.change(
      localization,
      store,
      new StartImport(context, id),
      `/imports/${id}?done=started`,
    );
  }

  @GetPage('discardImport', ':id/discard')
  async askToDiscard(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { t, locale } = localization;
    const { id, createdAt } = await this.imports.get(store.id, parsePathId(path));
    const { minute } = await this.times.createFormats(store.id, locale);
    const page = `${buildTransfersPath(store)}/imports/${id}`;
    return askToConfirm({
      question: t.transfers.discardQuestion,
      about: t.transfers.importOf({ when: minute(createdAt) }),
      text: t.transfers.discardText,
      yes: t.transfers.discardYes,
      no: t.transfers.keep,
      back: page,
    });
  }

  @PostForm('discardImport', ':id/discard')
  async discard(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const command = new DiscardImport(context, parsePathId(path));
    return this.change(localization, store, command, '?done=discarded');
  }

  @GetPage('undoImport', ':id/undo')
  async askToUndo(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { transfers: t } = localization.t;
    const { id, createdAt, counts } = await this.imports.get(store.id, parsePathId(path));
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const page = `${buildTransfersPath(store)}/imports/${id}`;
    return askToConfirm({
      question: t.undoQuestion,
      about: t.importOf({ when: minute(createdAt) }),
      text: t.undoText({ count: counts.created }),
      yes: t.undoYes,
      no: t.keep,
      back: page,
    });
  }

  @PostForm('undoImport', ':id/undo')
  async undo(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    return this.change(
      localization,
      store,
      new UndoImport(context, id),
      `/imports/${id}?done=undone`,
    );
  }

  /** Changes an import, or shows what it has become when that is not possible any more. */
  private async change(
    localization: Localization,
    store: EnteredStore,
    command: StartImport | DiscardImport | UndoImport,
    path: string,
  ): Promise<PageResult> {
    try {
      await this.commands.execute(command);
    } catch (error) {
      const errors = describeRejection(error, localization);
      const current = await this.imports.get(store.id, command.id);
      return this.page.show(localization, store, current, { errors });
    }
    return redirectTo(buildTransfersPath(store) + path);
  }
}

/** Describes why a file cannot be taken. */
function describeUploadErrors(error: unknown, localization: Localization): FormErrors {
  const { fields, text } = describeRejection(error, localization);
  const { card_id: card, ...others } = fields;
  const file = listErrors({ fields: others, text });
  return { fields: { ...(card && { card_id: card }), ...(file && { file: [file] }) }, text: '' };
}

/** Describes why columns cannot be taken. */
function describeColumnErrors(error: unknown, localization: Localization): FormErrors {
  const { fields, text } = describeRejection(error, localization);
  const { birthday, ...others } = fields;
  return { fields: { ...others, ...(birthday && { date_order: birthday }) }, text };
}
