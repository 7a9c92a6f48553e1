import { Body, Controller, Param, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Config } from '#configuration/config.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import type { Form } from '#platform/http/body-kinds.js';
import { getNow } from '#platform/kernel/clock.js';
import { parsePathId } from '#platform/http/path.js';
import { Throttle } from '#platform/http/throttle.js';
import { isAllowed } from '#identity/roles.js';
import { UNNAMED_STORE } from '#loyalty/accounts/account.js';
import { CreatePoster, DeletePoster, UpdatePoster } from '#loyalty/posters/poster.commands.js';
import { PostersService } from '#loyalty/posters/posters.service.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { parseCursor } from '#web/pages/page-query.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { type PageResult, showPage, redirectTo, askToConfirm } from '#web/pages/page-results.js';
import { linkToEntry } from '#web/pages/navigation.js';
import type { Localization } from '#translations/translations.js';
import { describeRejection, type Rejectable } from '#web/pages/form-errors.js';
import { PosterDocuments } from './poster-documents.service.js';
import type { ListedPoster } from './listed-poster.js';
import { PosterLists } from './poster-lists.service.js';
import {
  createPosterFormView,
  createPosterListView,
  POSTER_SCRIPT,
  posterFormView,
  posterListView,
  type PosterFormState,
  type PosterUrls,
} from './poster-console-view.js';
import { POSTER_STYLE } from './poster-style.js';
import { isPosterDesign } from './poster-design.js';
import {
  parsePosterDraft,
  parsePosterForm,
  posterForm,
  type PosterForm,
} from './poster-form.dto.js';
import { ISSUES } from '#translations/issues.js';
import { toSentence } from '#web/pages/error-sentences.js';

/** Serves the pages on which the posters of a store are made, changed, paused, shared and removed. */
@Controller('app/stores/:account_id/posters')
export class PostersConsoleController {
  constructor(
    private readonly lists: PosterLists,
    private readonly documents: PosterDocuments,
    private readonly posters: PostersService,
    private readonly commands: FormCommands,
    private readonly config: Config,
  ) {}

  @GetPage('listPosters')
  async list(
    @CurrentStore() store: EnteredStore,
    @Query() { after, done }: { after?: unknown; done?: unknown },
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const page = await this.lists.list(store.id, parseCursor(after));
    const cards = page.posters.length > 0 ? [] : await this.lists.listCards(store.id);
    const data = createPosterListView(page, {
      base: buildPath(store),
      cards: `/app/stores/${store.id}/cards/new`,
      canEdit: isAllowed(store.role, 'createPoster'),
      hasCards: page.posters.length > 0 || cards.length > 0,
      done,
      localization,
      now: getNow(),
      toUrls: (listed) => this.toUrls(listed),
      isOnlyLocal: this.config.isOnlyLocal,
    });
    return showPage({
      view: posterListView,
      title: localization.t.posterConsole.title,
      styles: [POSTER_STYLE],
      data,
    });
  }

  @GetPage('createPoster', 'new')
  async begin(
    @CurrentStore() store: EnteredStore,
    @Query('card') card: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    // Guests read the name of the store on the poster, and after that on their card.
    if (store.name === UNNAMED_STORE && isAllowed(store.role, 'store.settings')) {
      return redirectTo(`/app/stores/${store.id}/settings/name?next=poster`);
    }
    const values = posterForm.toValues({ card_id: card, require_email: true });
    return this.showForm(localization, store, { values });
  }

  @PostForm('createPoster')
  async create(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const values = posterForm.read(form);
    try {
      const parsed = parsePosterForm(values);
      const title = parsed.title ?? (await this.documents.findHeadline(store.id, parsed.cardId));
      const attributes = { ...parsed, title };
      const { id } = await this.commands.execute(new CreatePoster(context, attributes));
      return redirectTo(`${buildPath(store)}/${id}?done=created`);
    } catch (error) {
      return this.showRejection(localization, store, { values }, error);
    }
  }

  /** Draws what the form says so far: fields with errors are as if they were blank. */
  @GetPage('createPoster', 'new/picture')
  @Throttle(240)
  async preview(
    @CurrentStore() store: EnteredStore,
    @Query() form: Form,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { draft, paperSize } = parsePosterDraft(form);
    const svg = await this.documents.drawDraft(store.id, draft, { paperSize, bleed: false });
    await sendPicture(reply, svg);
  }

  @GetPage('updatePoster', ':id')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Query('done') done: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const listed = await this.lists.get(store.id, parsePathId(id));
    const values = posterForm.toValues(listed.poster);
    return this.showForm(localization, store, { listed, values, done });
  }

  /** Serves the picture of a poster. Unlike the public page it has no limit for each address. */
  @GetPage('listPosters', ':id/picture')
  @Throttle(240)
  async picture(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Query('design') design: unknown = 'rewards',
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { poster } = await this.lists.get(store.id, parsePathId(id));
    const published = isPosterDesign(design) && (await this.documents.find(poster.slug, design));
    if (!published) throw new NotFoundError('Poster');
    const sheet = { format: 'svg', paperSize: poster.paperSize, bleed: false } as const;
    const svg = await this.documents.get(published, sheet);
    await sendPicture(reply, svg);
  }

  @PostForm('updatePoster', ':id')
  async save(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const listed = await this.lists.get(store.id, parsePathId(path));
    const { poster } = listed;
    const values = { ...posterForm.read(form), card_id: String(poster.cardId) };
    try {
      const { cardId: _, requireEmail, requirePhone, ...changes } = parsePosterForm(values);
      await this.commands.execute(
        new UpdatePoster(context, poster.id, {
          ...changes,
          title: changes.title ?? (await this.documents.findHeadline(store.id, poster.cardId)),
          primaryColor: changes.primaryColor ?? poster.primaryColor,
          textColor: changes.textColor ?? poster.textColor,
          secondaryColor: changes.secondaryColor ?? poster.secondaryColor,
          // Of a poster that is paused, only the button opens the signup again.
          active: poster.active,
          ...(requireEmail !== null && { requireEmail }),
          ...(requirePhone !== null && { requirePhone }),
        }),
      );
      return redirectTo(`${buildPath(store)}/${poster.id}?done=saved`);
    } catch (error) {
      return this.showRejection(localization, store, { listed, values }, error);
    }
  }

  @PostForm('updatePoster', ':id/pause')
  async pause(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    await this.commands.execute(new UpdatePoster(context, id, { active: false }));
    return redirectTo(`${buildPath(store)}/${id}?done=paused`);
  }

  @PostForm('updatePoster', ':id/resume')
  async resume(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    await this.commands.execute(new UpdatePoster(context, id, { active: true }));
    return redirectTo(`${buildPath(store)}/${id}?done=resumed`);
  }

  @GetPage('deletePoster', ':id/remove')
  async askToRemove(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { poster } = await this.lists.get(store.id, parsePathId(path));
    const t = localization.t.posterConsole;
    return askToConfirm({
      question: t.removeAsk,
      about: poster.title,
      text: t.removeText,
      yes: t.removeYes,
      no: t.keep,
      back: `${buildPath(store)}/${poster.id}`,
    });
  }

  @PostForm('deletePoster', ':id/remove')
  async remove(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
  ): Promise<PageResult> {
    await this.commands.execute(new DeletePoster(context, parsePathId(path)));
    return redirectTo(`${buildPath(store)}?done=removed`);
  }

  /** Shows the form again with what was wrong. @throws every other error */
  private async showRejection(
    localization: Localization,
    store: EnteredStore,
    state: { values: PosterForm; listed?: ListedPoster },
    error: unknown,
  ): Promise<PageResult> {
    // The card may have been chosen by an address that somebody has edited.
    const isOfCard = error instanceof NotFoundError && state.listed === undefined;
    const errors = isOfCard
      ? { fields: { card_id: [toSentence(ISSUES.unknown_choice, localization.t)] }, text: '' }
      : describeRejection(error, localization);
    return this.showForm(localization, store, { ...state, errors });
  }

  private async showForm(
    localization: Localization,
    store: EnteredStore,
    state: Partial<PosterFormState> & Rejectable & { values: PosterForm },
  ): Promise<PageResult> {
    const { listed = null, errors, done = '', values } = state;
    const cards = listed ? [] : await this.lists.listCards(store.id);
    const data = createPosterFormView(
      { listed, done, values },
      {
        base: buildPath(store),
        cards,
        localization,
        now: getNow(),
        toUrls: (poster) => this.toUrls(poster),
        isOnlyLocal: this.config.isOnlyLocal,
        leftOut: listed ? await this.documents.listLeftOut(listed.poster.slug) : [],
      },
    );
    return showPage({
      view: posterFormView,
      title: data.title,
      breadcrumb: linkToEntry(store, 'posters', localization.t),
      data,
      errors,
      inputs: posterForm.toInputs(values),
      styles: [POSTER_STYLE],
      scripts: [POSTER_SCRIPT],
    });
  }

  private toUrls({ poster }: ListedPoster): PosterUrls {
    const { signup_url: signup, display_url: display } = this.posters.toJson(poster);
    return { signup, display };
  }
}

async function sendPicture(reply: FastifyReply, svg: Buffer): Promise<void> {
  await reply
    .type('image/svg+xml')
    .header('cache-control', 'private, no-cache')
    .header('content-security-policy', "default-src 'none'")
    .send(svg);
}

function buildPath({ id }: EnteredStore): string {
  return `/app/stores/${id}/posters`;
}
