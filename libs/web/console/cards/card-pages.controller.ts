import { Body, Controller, Param, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import { findUploadedFile, type Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import {
  getCustomerTranslations,
  getTranslations,
  type Localization,
} from '#translations/translations.js';
import { isAllowed } from '#identity/roles.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
  PostUpload,
} from '#web/pages/current-user.js';
import { getRootPath, setPageHeaders } from '#web/pages/page.js';
import {
  listErrors,
  describeRejection,
  type FormErrors,
  type Rejectable,
} from '#web/pages/form-errors.js';
import { parseCursor, parsePositiveInteger } from '#web/pages/page-query.js';
import { CardDesigns, ChangedMeanwhileError, PartlySavedError } from './card-designs.service.js';
import type { DesignedCard } from './designed-card.js';
import { CardLists } from './card-lists.service.js';
import { createDraft } from './card-draft.js';
import { isTemplate } from './card-templates.js';
import { cardForm, createDesignForm, readDesignForm, toDesignForm } from './design-form.dto.js';
import { isBeyondCard, type DesignForm } from './design-form.js';
import { parseDesign } from './parsed-design.dto.js';
import { createDesignView, DESIGN_SCRIPT, designView, type DesignState } from './design-view.js';
import { createFronts, listPoints } from './card-fronts.js';
import { renderStripQuery } from './draft-strips.js';
import { createUndoForm, parseUndoTime, renderUndoQuery } from './undo-notice.js';
import { createListView, createTemplateList, listView, templatesView } from './list-view.js';
import { frontsView } from './fronts-view.js';
import { showPage, redirectTo, PageResult } from '#web/pages/page-results.js';
import { localizeRequest } from '#web/pages/localize.js';

const MAX_PICTURE_BYTES = 2 * 1024 * 1024;

/** Serves the cards of a store: the list, the templates, and the designer. */
@Controller('app/stores/:account_id/cards')
export class CardPagesController {
  constructor(
    private readonly designs: CardDesigns,
    private readonly lists: CardLists,
    private readonly config: Config,
  ) {}

  @GetPage('listCards')
  async list(
    @CurrentStore() store: EnteredStore,
    @Query() { scope, after, done }: { scope?: unknown; after?: unknown; done?: unknown },
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const isArchive = scope === 'archived';
    const page = await this.lists.list(store.id, isArchive, parseCursor(after));
    const data = createListView(page, {
      base: buildPath(store),
      isArchive,
      canEdit: isAllowed(store.role, 'createCard'),
      done,
      now: getNow(),
      localization,
    });
    const { cardPages, words } = localization.t;
    if (!isArchive) return showPage({ view: listView, title: words.cards, data });
    const breadcrumb = { path: buildPath(store), text: words.cards };
    return showPage({ view: listView, title: cardPages.archivedCards, data, breadcrumb });
  }

  @GetPage('createCard', 'new')
  async begin(
    @CurrentStore() store: EnteredStore,
    @Query('template') template: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    if (template === undefined) return this.showTemplates(localization, store);
    const { locale } = await this.designs.getStore(store.id);
    const { templates } = getTranslations(locale).t.cardPages;
    const form = createDesignForm(isTemplate(template) ? template : null, templates);
    return this.showDesign(localization, store, { form });
  }

  @PostUpload('createCard', '', MAX_PICTURE_BYTES)
  async create(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Body() body: Form,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const form = readDesignForm(body);
    if (body['show'] !== undefined)
      return this.showDesign(localizeRequest(request), store, {
        form: fixColors(form, body['show']),
      });
    try {
      const { timeZone } = await this.designs.getStore(store.id);
      const design = parseDesign(form, { timeZone, previous: null });
      const beyond = askBeyond(localizeRequest(request), form);
      if (beyond)
        return await this.showDesign(localizeRequest(request), store, { form, errors: beyond });
      const picture = findUploadedFile(request, 'picture');
      const id = await this.designs.create({ context, design, picture });
      return redirectTo(`${buildPath(store)}/${id}?done=created`);
    } catch (error) {
      return this.showRejection(localizeRequest(request), store, form, null, error);
    }
  }

  /** Renders the previews of a form, for the script of the page, which asks for them after each change. */
  @PostForm('createCard', 'preview', 240)
  async preview(
    @CurrentStore() store: EnteredStore,
    @Query('card') card: unknown,
    @Body() body: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const id = parsePositiveInteger(card);
    const designed = id === null ? null : await this.designs.get(store.id, id);
    const isPictureChosen = body['picture_chosen'] !== undefined;
    const form = readDesignForm(body);
    const data = await this.createPreview(localization, store, form, designed, isPictureChosen);
    const html = frontsView(data);
    return new PageResult((_request, reply) =>
      setPageHeaders(reply.status(200), { html, policy: "default-src 'none'" }),
    );
  }

  @GetPage('updateCard', ':id')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Query() { done, undo }: { done?: unknown; undo?: unknown },
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const designed = await this.designs.get(store.id, parsePathId(id));
    const { timeZone } = await this.designs.getStore(store.id);
    const form = toDesignForm(designed.card, designed.rewards, timeZone);
    const { card } = designed;
    const undoForm = createUndoForm(undo, {
      card,
      cards: buildPath(store),
      page: 'card',
      now: getNow(),
    });
    return this.showDesign(localization, store, { form, designed, done, undo: undoForm });
  }

  @PostForm('updateCard', ':id/undo')
  async undo(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() body: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    const designed = await this.designs.get(store.id, id);
    const time = parseUndoTime(body['undo']);
    try {
      if (time === null) throw new ChangedMeanwhileError();
      const openedUpdatedAt = body['opened_updated_at'];
      await this.designs.restore(context, id, { time, openedUpdatedAt });
    } catch (error) {
      const { timeZone } = await this.designs.getStore(store.id);
      const form = toDesignForm(designed.card, designed.rewards, timeZone);
      return this.showRejection(localization, store, form, designed, error);
    }
    return redirectTo(
      body['page'] === 'brand'
        ? `/app/stores/${store.id}/brand?done=undone`
        : `${buildPath(store)}/${id}?done=undone`,
    );
  }

  @PostUpload('updateCard', ':id', MAX_PICTURE_BYTES)
  async save(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() body: Form,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const designed = await this.designs.get(store.id, parsePathId(path));
    const form = readDesignForm(body);
    if (body['show'] !== undefined) {
      return this.showDesign(localizeRequest(request), store, {
        form: fixColors(form, body['show']),
        designed,
        isUnsaved: true,
        openedUpdatedAt: body['opened_updated_at'],
      });
    }
    try {
      const { timeZone } = await this.designs.getStore(store.id);
      const design = parseDesign(form, { timeZone, previous: designed.card });
      const beyond = askBeyond(localizeRequest(request), form);
      if (beyond) {
        const openedUpdatedAt = body['opened_updated_at'];
        const state = { form, designed, openedUpdatedAt, isUnsaved: true, errors: beyond };
        return await this.showDesign(localizeRequest(request), store, state);
      }
      const picture = findUploadedFile(request, 'picture');
      const startedAt = getNow();
      await this.designs.update({ context, design, picture }, designed, body['opened_updated_at']);
      const undo = renderUndoQuery(startedAt);
      return redirectTo(`${buildPath(store)}/${designed.card.id}?done=saved&${undo}`);
    } catch (error) {
      // Unless the page says so, the person has not seen what others have changed since.
      const openedUpdatedAt =
        error instanceof ChangedMeanwhileError ? undefined : body['opened_updated_at'];
      return this.showRejection(
        localizeRequest(request),
        store,
        form,
        designed,
        error,
        openedUpdatedAt,
      );
    }
  }

  private async showTemplates(
    localization: Localization,
    store: EnteredStore,
  ): Promise<PageResult> {
    const { t } = localization;
    const data = createTemplateList(buildPath(store), this.buildStripPath(store.id), t);
    return showPage({
      view: templatesView,
      title: t.cardPages.newTitle,
      data,
    });
  }

  /** Shows the form again with what was wrong. @throws every other error */
  private async showRejection(
    localization: Localization,
    store: EnteredStore,
    form: DesignForm,
    designed: DesignedCard | null,
    error: unknown,
    openedUpdatedAt = designed?.card.updatedAt,
  ): Promise<PageResult> {
    const t = localization.t.cardPages;
    if (error instanceof PartlySavedError) {
      const current = await this.designs.get(store.id, error.cardId);
      const text = [
        t.partlySaved,
        listErrors(describeRejection(error.rejection, localization)),
      ].join('\n');
      const { timeZone } = await this.designs.getStore(store.id);
      const saved = toDesignForm(current.card, current.rewards, timeZone);
      return this.showDesign(localization, store, {
        form: saved,
        designed: current,
        errors: { fields: {}, text },
      });
    }
    const errors =
      error instanceof ChangedMeanwhileError
        ? { fields: {}, text: t.changedMeanwhile }
        : describeRejection(error, localization);
    const state = { form, designed, openedUpdatedAt, isUnsaved: true, errors };
    return this.showDesign(localization, store, state);
  }

  private async showDesign(
    localization: Localization,
    store: EnteredStore,
    state: Partial<DesignState> & Pick<DesignState, 'form'> & Rejectable,
  ): Promise<PageResult> {
    const { designed = null, errors } = state;
    const preview = await this.createPreview(localization, store, state.form, designed);
    const data = createDesignView(
      {
        done: '',
        undo: null,
        isUnsaved: false,
        openedUpdatedAt: designed?.card.updatedAt,
        ...state,
        designed,
      },
      {
        isOnlyLocal: this.config.isOnlyLocal,
        base: buildPath(store),
        posters: `/app/stores/${store.id}/posters/new`,
        preview,
        localization,
      },
    );
    return showPage({
      view: designView,
      title: designed?.card.name ?? localization.t.cardPages.newTitle,
      data,
      errors,
      inputs: cardForm.toInputs(state.form.fields),
      scripts: [DESIGN_SCRIPT],
      allow: { 'connect-src': ["'self'"], 'img-src': ['blob:'] },
    });
  }

  /** Builds the path of the pictures of cards that are not saved. */
  private buildStripPath(accountId: number): string {
    return `${getRootPath(this.config)}/app/stores/${accountId}/card-strips`;
  }

  private async createPreview(
    localization: Localization,
    { id }: EnteredStore,
    form: DesignForm,
    designed: DesignedCard | null,
    isPictureChosen = false,
  ) {
    const store = await this.designs.getStore(id);
    const page = localization;
    const draft = createDraft(form, designed?.card.stripPicture ?? null, isPictureChosen);
    const { design } = draft;
    const strips = this.buildStripPath(id);
    return {
      root: getRootPath(this.config),
      fronts: createFronts({
        draft,
        storeName: store.name,
        store: getCustomerTranslations(store),
        page,
        toStripUrl: (filled, size) => `${strips}?${renderStripQuery({ design, filled, size })}`,
      }),
      t: page.t.cardPages,
      warnings: draft.warnings,
      points: listPoints(draft, page),
    };
  }
}

function buildPath({ id }: EnteredStore): string {
  return `/app/stores/${id}/cards`;
}

/** Ends the warning of this name, where the form has it. */
function fixColors(form: DesignForm, name: string): DesignForm {
  const { fix } = createDraft(form, null).warnings.find(({ warning }) => warning === name) ?? {};
  return { ...form, fields: { ...form.fields, ...fix } };
}

/** Asks about rewards for which one card is not enough, unless the form says that they are meant. */
function askBeyond({ t }: Localization, { fields, rewards }: DesignForm): FormErrors | null {
  const required = Number(fields.stamps_required);
  const questions = rewards.flatMap((row, index) =>
    isBeyondCard(row, fields.stamps_required) && !row.isBeyondMeant
      ? [[`reward_${index}_stamps`, [t.cardPages.beyondAsk({ required })]]]
      : [],
  );
  return questions.length === 0 ? null : { fields: Object.fromEntries(questions), text: '' };
}
