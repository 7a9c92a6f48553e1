import { Body, Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createHash } from 'node:crypto';
import type { CommandContext } from '#kernel/aggregate.js';
import { RejectedError, type FieldErrors } from '#kernel/errors.js';
import {
  detectFileType,
  findUploadedFile,
  TakesForm,
  TakesUpload,
  type Form,
} from '#http/body-kinds.js';
import { parsePathId } from '#http/path.js';
import type { Translations } from '#translations/translations.js';
import type { CustomerImport } from '#imports/customer-import.js';
import { ChooseImportColumns, DiscardImport } from '#imports/draft-import.commands.js';
import { FILE_PROBLEM_NAMES, FILE_PROBLEMS } from '#imports/file-formats.js';
import { CreateImport, StartImport, UndoImport } from '#imports/import.commands.js';
import type { ImportJson } from '#imports/import.dto.js';
import { renderRowsAsCsv } from '#imports/import-rows-csv.js';
import { ImportsService } from '#imports/imports.service.js';
import {
  ConsoleContext,
  CurrentStore,
  CurrentUser,
  RequiresOperation,
  type EnteredStore,
  type SignedInUser,
} from '#pages/current-user.js';
import { findNotice } from '#pages/page-query.js';
import { Pages } from '#pages/pages.service.js';
import { SubmittedForms } from '#pages/submitted-forms.service.js';
import { StoreTimes } from '#pages/store-times.service.js';
import { lacksIdentity, readMapping, UPLOAD_ENCODINGS } from './import-page.js';
import { ImportPages } from './import-pages.service.js';
import { buildTransfersPath, TransferPages } from './transfer-pages.service.js';

const MAX_FILE_BYTES = 20 * 1024 * 1024;

/** Serves the way of an import: upload, columns, check, start, result, undo. */
@Controller('app/stores/:account_id/transfers/imports')
export class ImportPagesController {
  constructor(
    private readonly pages: Pages,
    private readonly page: ImportPages,
    private readonly transfers: TransferPages,
    private readonly imports: ImportsService,
    private readonly commands: CommandBus,
    private readonly forms: SubmittedForms,
    private readonly times: StoreTimes,
  ) {}

  @Post()
  @TakesUpload(MAX_FILE_BYTES)
  @RequiresOperation('createImport')
  async upload(
    @CurrentStore() store: EnteredStore,
    @CurrentUser() { userId }: SignedInUser,
    @ConsoleContext() context: CommandContext,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { transfers: t } = this.pages.localize(request).t;
    const { card_id: card = '' } = form;
    const bytes = findUploadedFile(request, 'file');
    const encoding = UPLOAD_ENCODINGS.find((one) => one === form['encoding']) ?? null;
    const typed = { card, encoding: encoding ?? '', status: 422 };
    if (!bytes) {
      await this.transfers.send(request, reply, store, {
        ...typed,
        errors: { file: [t.fileMissing] },
      });
      return;
    }
    const format = detectFileType(bytes) === 'text/csv' ? ('csv' as const) : ('ndjson' as const);
    const options = { card_id: toId(card), dry_run: true, mapping: null, date_order: null };
    try {
      // Another file in the same form is another request, as when somebody has gone back in their browser.
      const file = createHash('sha256').update(bytes).digest('hex');
      const submitted = { userId, action: `import into ${store.id}`, form: { ...form, file } };
      const { id } = await this.forms.executeOnce<ImportJson>(submitted, (keyed) =>
        this.commands.execute(
          new CreateImport({ ...context, keyed }, { bytes, format, encoding }, options, true),
        ),
      );
      const path = `${buildTransfersPath(store)}/imports/${id}?done=uploaded`;
      await this.pages.redirect(reply, path);
    } catch (error) {
      if (!(error instanceof RejectedError)) throw error;
      const errors = describeUploadErrors(error, t);
      await this.transfers.send(request, reply, store, { ...typed, errors });
    }
  }

  @Get(':id')
  @RequiresOperation('getImport')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Query('done') done: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const notices = this.pages.localize(request).t.transfers.done;
    const current = await this.imports.get(store.id, parsePathId(path));
    await this.page.send(request, reply, store, current, { notice: findNotice(done, notices) });
  }

  @Get(':id/rows.csv')
  @RequiresOperation('listImportRows')
  async showRows(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const current = await this.imports.get(store.id, parsePathId(path));
    const rows = await this.imports.listAllRows(current, 'failed');
    await reply
      .type('text/csv; charset=utf-8')
      .header('cache-control', 'no-store')
      .header('content-disposition', `attachment; filename="import-${current.id}.csv"`)
      .send(Buffer.from(renderRowsAsCsv(current, rows)));
  }

  @Post(':id/columns')
  @TakesForm()
  @RequiresOperation('imports.choose_columns')
  async chooseColumns(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const current = await this.imports.get(store.id, parsePathId(path));
    const mapping = readMapping(current.columns, form);
    const { card_id: card = '', date_order: order = '' } = form;
    const choices = {
      cardId: toId(card),
      mapping,
      dateOrder: order === 'dmy' || order === 'mdy' ? order : null,
    } as const;
    try {
      await this.commands.execute(new ChooseImportColumns(context, current.id, choices));
    } catch (error) {
      if (!(error instanceof RejectedError)) throw error;
      const columns = current.columns.map(({ name }) => ({ name, field: mapping[name] ?? null }));
      const typed = { ...current, columns, cardId: choices.cardId, dateOrder: choices.dateOrder };
      const { transfers: t } = this.pages.localize(request).t;
      const errors = describeColumnErrors(error.errors, columns, choices.cardId, t);
      await this.page.send(request, reply, store, typed, { errors, status: 422 });
      return;
    }
    await this.pages.redirect(
      reply,
      `${buildTransfersPath(store)}/imports/${current.id}?done=checked`,
    );
  }

  @Post(':id/start')
  @TakesForm()
  @RequiresOperation('startImport')
  async start(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const id = parsePathId(path);
    await this.change(
      request,
      reply,
      store,
      new StartImport(context, id),
      `/imports/${id}?done=started`,
    );
  }

  @Get(':id/discard')
  @RequiresOperation('discardImport')
  async askToDiscard(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { t, locale } = this.pages.localize(request);
    const { id, createdAt } = await this.imports.get(store.id, parsePathId(path));
    const { minute } = await this.times.createFormats(store.id, locale);
    const page = `${buildTransfersPath(store)}/imports/${id}`;
    await this.pages.sendConfirmation(request, reply, {
      question: t.transfers.discardQuestion,
      about: t.transfers.importOf({ when: minute(createdAt) }),
      text: t.transfers.discardText,
      yes: t.transfers.discardYes,
      no: t.transfers.keep,
      action: `${page}/discard`,
      back: page,
    });
  }

  @Post(':id/discard')
  @TakesForm()
  @RequiresOperation('discardImport')
  async discard(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const command = new DiscardImport(context, parsePathId(path));
    await this.change(request, reply, store, command, '?done=discarded');
  }

  @Get(':id/undo')
  @RequiresOperation('undoImport')
  async askToUndo(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const localization = this.pages.localize(request);
    const { transfers: t } = localization.t;
    const { id, createdAt, counts } = await this.imports.get(store.id, parsePathId(path));
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const page = `${buildTransfersPath(store)}/imports/${id}`;
    await this.pages.sendConfirmation(request, reply, {
      question: t.undoQuestion,
      about: t.importOf({ when: minute(createdAt) }),
      text: t.undoText({ count: counts.created }),
      yes: t.undoYes,
      no: t.keep,
      action: `${page}/undo`,
      back: page,
    });
  }

  @Post(':id/undo')
  @TakesForm()
  @RequiresOperation('undoImport')
  async undo(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const id = parsePathId(path);
    await this.change(
      request,
      reply,
      store,
      new UndoImport(context, id),
      `/imports/${id}?done=undone`,
    );
  }

  /** Changes an import, or shows what it has become when that is not possible any more. */
  private async change(
    request: FastifyRequest,
    reply: FastifyReply,
    store: EnteredStore,
    command: StartImport | DiscardImport | UndoImport,
    path: string,
  ): Promise<void> {
    try {
      await this.commands.execute<typeof command, ImportJson>(command);
    } catch (error) {
      if (!(error instanceof RejectedError)) throw error;
      const current = await this.imports.get(store.id, command.id);
      const { changedMeanwhile, notNow } = this.pages.localize(request).t.transfers;
      const isLimited = error.code === 'limit_reached' || error.code === 'quota_exceeded';
      const errors = { base: [isLimited ? notNow : changedMeanwhile] };
      await this.page.send(request, reply, store, current, { errors, status: 422 });
      return;
    }
    await this.pages.redirect(reply, buildTransfersPath(store) + path);
  }
}

/** Describes in the language of the page why a file cannot be taken. */
function describeUploadErrors(
  { errors: { card_id: card, ...others }, code, resolution = '' }: RejectedError,
  t: Translations['transfers'],
): FieldErrors {
  if (code === 'limit_reached') return { file: [t.tooManyWaiting] };
  const sentences = Object.values(others).flat();
  const problem = FILE_PROBLEM_NAMES.find((name) => sentences.includes(FILE_PROBLEMS[name]));
  const text = problem
    ? t.fileProblems[problem]
    : `${t.fileUnreadable} ${[...sentences, resolution].join(' ').trim()}`;
  return {
    ...(card && { card_id: [t.cardClosed] }),
    ...(sentences.length > 0 && { file: [text] }),
  };
}

/** Describes in the language of the page why columns cannot be taken. */
function describeColumnErrors(
  { mapping, card_id: card, birthday }: FieldErrors,
  columns: CustomerImport['columns'],
  cardId: number | null,
  t: Translations['transfers'],
): FieldErrors {
  return {
    ...(mapping && { mapping: [lacksIdentity(columns) ? t.columnsMissing : t.columnsTwice] }),
    ...(card && { card_id: [cardId === null ? t.cardNeeded : t.cardClosed] }),
    ...(birthday && { date_order: [t.dateOrderNeeded] }),
    ...(!mapping && !card && !birthday && { base: [t.changedMeanwhile] }),
  };
}

function toId(text: string): number | null {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : null;
}
