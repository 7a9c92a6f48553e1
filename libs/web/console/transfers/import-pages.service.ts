import { Injectable } from '@nestjs/common';
import type { CustomerImport } from '#loyalty/imports/customer-import.js';
import { ImportsService } from '#loyalty/imports/imports.service.js';
import { loadAsset } from '#web/pages/assets.js';
import type { EnteredStore } from '#web/pages/current-user.js';
import { loadView } from '#web/pages/view.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { type PageResult, showPage } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import {
  describeStart,
  describeImportState,
  isMoving,
  canUndoImport,
  lacksIdentity,
  listColumnFields,
  listCounts,
  listFieldChoices,
  type Choice,
  type ColumnField,
  type Mood,
} from './import-page.js';
import { describeIssues, describeRowIssues, findRowName } from './import-issues.js';
import type { Rejectable } from '#web/pages/form-errors.js';
import { buildTransfersPath, TransferPages, TRANSFERS_STYLE } from './transfer-pages.service.js';

const EXAMPLE_ROWS = 5;
const SHOWN_ERRORS = 20;

type ImportView = {
  at: string;
  state: string;
  mood: Mood;
  path: string;
  flash: string;
  /** Whether the page shows the errors of its form. */
  isRejected: boolean;
  error: string;
  /** Null: nobody is at work on it. */
  progress: { label: string; text: string; done: number; total: number } | null;
  counts: { label: string; value: string }[];
  /** Null: it does not wait for a start. */
  draft: {
    columns: ColumnField[];
    fields: Choice[];
    isUnusable: boolean;
    cards: Choice[];
    card: string;
    orders: Choice[];
    order: string;
    start: string;
    canStart: boolean;
  } | null;
  wrongRows: { row: string; name: string; problem: string }[];
  /** How many more rows with errors there are. */
  more: string;
  /** What a finished import has brought; empty: no customers. */
  imported: string;
  isUndoable: boolean;
  areRowsDeleted: boolean;
  days: number;
};

const view = loadView<ImportView>(import.meta.url, './views/import.eta');
const SCRIPT = loadAsset(import.meta.url, './assets/import-progress.js');

/** Shows an import: what it is at, its columns, and the rows with errors. */
@Injectable()
export class ImportPages {
  constructor(
    private readonly transfers: TransferPages,
    private readonly imports: ImportsService,
    private readonly times: StoreTimes,
  ) {}

  async show(
    localization: Localization,
    store: EnteredStore,
    current: CustomerImport,
    { flash = '', errors }: { flash?: string } & Rejectable,
  ): Promise<PageResult> {
    const { t, locale } = localization;
    const { state, counts, rowsTotal } = current;
    const format = new Intl.NumberFormat(locale);
    const { minute } = await this.times.createFormats(store.id, locale);
    const base = buildTransfersPath(store);
    const at = minute(current.createdAt);
    const wrong = await this.imports.listFailedRows(current, { after: null, limit: SHOWN_ERRORS });
    const more = counts.failed - wrong.length;
    return showPage({
      view,
      title: `${t.transfers.importOf({ when: at })} · ${store.name}`,
      width: 'form',
      errors,
      styles: [TRANSFERS_STYLE],
      ...(isMoving(state) && { scripts: [SCRIPT], allow: { 'connect-src': ["'self'"] } }),
      data: {
        at,
        ...describeImportState(state, t.transfers),
        path: `${base}/imports/${current.id}`,
        flash,
        isRejected: Boolean(errors),
        error: describeIssues(current.error ?? {}, t),
        progress: isMoving(state)
          ? {
              label: t.transfers.progress[state],
              text: t.transfers.progressOf({ done: counts.done, total: rowsTotal }),
              done: counts.done,
              total: rowsTotal,
            }
          : null,
        counts: listCounts(current, localization),
        draft: state === 'ready' ? await this.describeDraft(store, current, localization) : null,
        wrongRows: wrong.map((row) => ({
          row: format.format(row.row),
          name: findRowName(row.cells ?? [], current.columns),
          problem: describeRowIssues(row.errors ?? {}, row.cells ?? [], current.columns, t),
        })),
        more: more > 0 ? t.transfers.more({ count: more }) : '',
        imported:
          state === 'done' && counts.created > 0
            ? t.transfers.imported({ count: counts.created })
            : '',
        isUndoable: canUndoImport(current),
        areRowsDeleted: current.rowsDeletedAt !== null,
        days: this.transfers.undoDays,
      },
    });
  }

  private async describeDraft(
    store: EnteredStore,
    current: CustomerImport,
    localization: Localization,
  ): Promise<NonNullable<ImportView['draft']>> {
    const { transfers: t } = localization.t;
    const { columns, cardId, dateOrder } = current;
    const rows = await this.imports.listRows(current, null, { after: null, limit: EXAMPLE_ROWS });
    const cards = await this.transfers.listCards(store, t.noCard);
    const card = cardId === null ? '' : String(cardId);
    const chosen = cards.find(({ value }) => value !== '' && value === card);
    const start = describeStart(current, chosen, localization);
    return {
      columns: listColumnFields(
        columns,
        rows.map(({ data }) => data),
        t,
      ),
      fields: listFieldChoices(t),
      isUnusable: lacksIdentity(columns),
      cards,
      card,
      orders: columns.some(({ field }) => field === 'birthday')
        ? [
            { value: '', text: t.dateOrders.auto },
            { value: 'dmy', text: t.dateOrders.dmy },
            { value: 'mdy', text: t.dateOrders.mdy },
          ]
        : [],
      order: dateOrder ?? '',
      start: start.text,
      canStart: start.canStart,
    };
  }
}
