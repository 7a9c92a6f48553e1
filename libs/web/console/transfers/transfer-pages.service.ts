import { Injectable } from '@nestjs/common';
import type { Rejectable } from '#web/pages/form-errors.js';
import { Config } from '#configuration/config.js';
import type { Translations, Localization } from '#translations/translations.js';
import { getNow } from '#platform/kernel/clock.js';
import { isExpired } from '#loyalty/cards/card.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { CardsService } from '#loyalty/cards/cards.service.js';
import { ImportsService } from '#loyalty/imports/imports.service.js';
import { loadAsset } from '#web/pages/assets.js';
import type { EnteredStore } from '#web/pages/current-user.js';
import { showPage, type PageResult } from '#web/pages/page-results.js';
import { loadView } from '#web/pages/view.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { takePage } from '#web/pages/page-query.js';
import {
  describeImportState,
  listEncodingChoices,
  type Choice,
  type ImportLine,
} from './import-page.js';

const PAGE_SIZE = 20;
const MAX_CARDS = 500;

type TransfersView = {
  base: string;
  /** Of the form, so that it counts once. */
  cards: Choice[];
  card: string;
  encodings: Choice[];
  /** Empty: as the file itself shows it. */
  encoding: string;
  lines: ImportLine[];
  older: string | null;
  isFirst: boolean;
  /** For how long an import can be undone. */
  days: number;
  flash: string;
  range: { from: string; to: string; kind: string };
  kinds: { value: string; text: string; about: string }[];
};

export type TransfersInput = {
  after?: number[] | null;
  flash?: string;
  card?: string;
  encoding?: string;
  range?: Partial<TransfersView['range']>;
} & Rejectable;

const view = loadView<TransfersView>(import.meta.url, './views/transfers.eta');
export const TRANSFERS_STYLE = loadAsset(import.meta.url, './assets/transfers.css');

/** A card that customers can get. @property welcomeStamps what a new one begins with */
export type CardChoice = Choice & { welcomeStamps: number };

/** Shows the page from which files are imported and exported. */
@Injectable()
export class TransferPages {
  /** For how many days an import can be undone. */
  readonly undoDays: number;

  constructor(
    private readonly imports: ImportsService,
    private readonly cards: CardsService,
    private readonly times: StoreTimes,
    { importRetentionDays }: Config,
  ) {
    this.undoDays = importRetentionDays;
  }

  async show(
    localization: Localization,
    store: EnteredStore,
    { after = null, flash = '', errors, card = '', encoding = '', range }: TransfersInput,
  ): Promise<PageResult> {
    const { transfers: t } = localization.t;
    const base = buildTransfersPath(store);
    const [list, cards, { minute }] = await Promise.all([
      this.imports.list(store.id, {
        after,
        limit: PAGE_SIZE + 1,
      }),
      this.listCards(store, t.noCard),
      this.times.createFormats(store.id, localization.locale),
    ]);
    const { page, last } = takePage(list, PAGE_SIZE);
    return showPage({
      view,
      title: `${t.title} · ${store.name}`,
      errors,
      styles: [TRANSFERS_STYLE],
      data: {
        base,
        cards,
        card,
        encodings: listEncodingChoices(t),
        encoding,
        lines: page.map(({ id, state, created_at: at, created, updated, failed }) => ({
          ...describeImportState(state, t),
          path: `${base}/imports/${id}`,
          at: minute(new Date(at)),
          result: state === 'checking' ? '' : t.summary({ created, updated, failed }),
        })),
        older: last ? `${base}?after=${last.id}` : null,
        isFirst: after === null,
        days: this.undoDays,
        flash,
        range: { from: '', to: '', kind: 'redemptions', ...range },
        kinds: listKinds(t),
      },
    });
  }

  /** Finds the card of a store that has one which customers can get; null where it has none or several. */
  async findOnlyCardId(store: EnteredStore): Promise<number | null> {
    const [card, other] = await this.listOpenCards(store);
    return card && !other ? card.id : null;
  }

  /** Lists the cards that customers can get, and the choice of none. */
  async listCards(store: EnteredStore, none: string): Promise<CardChoice[]> {
    const cards = await this.listOpenCards(store);
    return [
      { value: '', text: none, welcomeStamps: 0 },
      ...cards.map(({ id, name, initial_stamps: welcomeStamps }) => ({
        value: String(id),
        text: name,
        welcomeStamps,
      })),
    ];
  }

  private async listOpenCards({ id }: EnteredStore): Promise<CardJson[]> {
    const filter = { scope: 'active' as const, updatedSince: null };
    const cards = await this.cards.list(id, filter, { after: null, limit: MAX_CARDS });
    const now = getNow();
    return cards.filter(({ expires_at: expiresAt }) => !isExpired({ expiresAt }, now));
  }
}

export function buildTransfersPath({ id }: EnteredStore): string {
  return `/app/stores/${id}/transfers`;
}

/** Lists what can be exported. */
function listKinds(t: Translations['transfers']): TransfersView['kinds'] {
  const kinds = ['customers', 'customer_cards', 'redemptions', 'history'] as const;
  return kinds.map((kind) => ({ value: kind, text: t.kinds[kind], about: t.kindsAbout[kind] }));
}
