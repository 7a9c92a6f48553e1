import { Body, Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext } from '#kernel/aggregate.js';
import { InvalidFieldsError, NotFoundError, RejectedError } from '#kernel/errors.js';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { parsePathId } from '#http/path.js';
import { Throttle } from '#http/throttle.js';
import { isAllowed } from '#identity/roles.js';
import { CreatePoster, DeletePoster, UpdatePoster } from '#posters/poster.commands.js';
import { PostersService } from '#posters/posters.service.js';
import {
  ConsoleContext,
  CurrentStore,
  CurrentUser,
  RequiresOperation,
  type EnteredStore,
  type SignedInUser,
} from '#pages/current-user.js';
import { parseId } from '#pages/page-query.js';
import { Pages } from '#pages/pages.service.js';
import { SubmittedForms } from '#pages/submitted-forms.service.js';
import { PosterDocuments } from './poster-documents.service.js';
import type { ListedPoster } from './listed-poster.js';
import { parsePosterForm } from './parsed-poster.dto.js';
import { PosterLists } from './poster-lists.service.js';
import {
  createPosterFormView,
  createPosterListView,
  posterFormView,
  posterListView,
  type PosterFormState,
  type PosterUrls,
} from './poster-console-view.js';
import { createPosterForm, readPosterForm, toPosterForm, type PosterForm } from './poster-form.js';

/** Serves the pages on which the posters of a store are made, changed, paused, shared and removed. */
@Controller('app/stores/:account_id/posters')
export class PostersConsoleController {
  constructor(
    private readonly pages: Pages,
    private readonly lists: PosterLists,
    private readonly documents: PosterDocuments,
    private readonly posters: PostersService,
    private readonly commands: CommandBus,
    private readonly forms: SubmittedForms,
  ) {}

  @Get()
  @RequiresOperation('listPosters')
  async list(
    @CurrentStore() store: EnteredStore,
    @Query() { after, done }: { after?: unknown; done?: unknown },
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const localization = this.pages.localize(request);
    const page = await this.lists.list(store.id, parseId(after) ?? 0);
    const cards = page.posters.length > 0 ? [] : await this.lists.listCards(store.id);
    const data = createPosterListView(page, {
      base: buildPath(store),
      cards: `/app/stores/${store.id}/cards/new`,
      canEdit: isAllowed(store.role, 'createPoster'),
      hasCards: page.posters.length > 0 || cards.length > 0,
      done,
      localization,
      toUrls: (listed) => this.toUrls(listed),
    });
    await this.pages.send(request, reply, {
      view: posterListView,
      title: localization.t.posterConsole.title,
      data,
    });
  }

  @Get('new')
  @RequiresOperation('createPoster')
  async begin(
    @CurrentStore() store: EnteredStore,
    @Query('card') card: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const values = createPosterForm(typeof card === 'string' ? card : '');
    await this.sendForm(request, reply, store, { values });
  }

  @Post()
  @TakesForm()
  @RequiresOperation('createPoster')
  @Throttle(60)
  async create(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @CurrentUser() { userId }: SignedInUser,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const values = readPosterForm(form);
    try {
      const attributes = parsePosterForm(values);
      const { id } = await this.forms.executeOnce({ userId, action: 'poster', form }, (keyed) =>
        this.commands.execute(new CreatePoster({ ...context, keyed }, attributes)),
      );
      await this.pages.redirect(reply, `${buildPath(store)}/${id}?done=created`);
    } catch (error) {
      await this.sendRejected(request, reply, store, { values }, error);
    }
  }

  @Get(':id')
  @RequiresOperation('updatePoster')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Query('done') done: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const listed = await this.lists.get(store.id, parsePathId(id));
    const values = toPosterForm(listed.poster);
    await this.sendForm(request, reply, store, { listed, values, done });
  }

  /** Serves the picture of a poster. Unlike the public page it has no limit for each address. */
  @Get(':id/picture')
  @RequiresOperation('listPosters')
  @Throttle(240)
  async picture(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { poster } = await this.lists.get(store.id, parsePathId(id));
    const published = await this.documents.find(poster.slug);
    if (!published) throw new NotFoundError('Poster');
    const sheet = { format: 'svg', paperSize: poster.paperSize, bleed: false } as const;
    const svg = await this.documents.get(published, sheet);
    await reply
      .type('image/svg+xml')
      .header('cache-control', 'private, no-cache')
      .header('content-security-policy', "default-src 'none'")
      .send(svg);
  }

  @Post(':id')
  @TakesForm()
  @RequiresOperation('updatePoster')
  @Throttle(60)
  async save(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const listed = await this.lists.get(store.id, parsePathId(path));
    const { poster } = listed;
    const values = { ...readPosterForm(form), card_id: String(poster.cardId) };
    try {
      const { cardId: _, requireEmail, requirePhone, ...changes } = parsePosterForm(values);
      await this.commands.execute(
        new UpdatePoster(context, poster.id, {
          ...changes,
          title: changes.title ?? listed.card,
          primaryColor: changes.primaryColor ?? poster.primaryColor,
          textColor: changes.textColor ?? poster.textColor,
          secondaryColor: changes.secondaryColor ?? poster.secondaryColor,
          // Of a poster that is paused, only the button opens the signup again.
          active: poster.active,
          ...(requireEmail !== null && { requireEmail }),
          ...(requirePhone !== null && { requirePhone }),
        }),
      );
      await this.pages.redirect(reply, `${buildPath(store)}/${poster.id}?done=saved`);
    } catch (error) {
      await this.sendRejected(request, reply, store, { listed, values }, error);
    }
  }

  @Post(':id/pause')
  @TakesForm()
  @RequiresOperation('updatePoster')
  async pause(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const id = parsePathId(path);
    await this.commands.execute(new UpdatePoster(context, id, { active: false }));
    await this.pages.redirect(reply, `${buildPath(store)}/${id}?done=paused`);
  }

  @Post(':id/resume')
  @TakesForm()
  @RequiresOperation('updatePoster')
  async resume(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const id = parsePathId(path);
    await this.commands.execute(new UpdatePoster(context, id, { active: true }));
    await this.pages.redirect(reply, `${buildPath(store)}/${id}?done=resumed`);
  }

  @Get(':id/remove')
  @RequiresOperation('deletePoster')
  async askToRemove(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { poster } = await this.lists.get(store.id, parsePathId(path));
    const t = this.pages.localize(request).t.posterConsole;
    await this.pages.sendConfirmation(request, reply, {
      question: t.removeAsk,
      about: poster.title,
      text: t.removeText,
      yes: t.removeYes,
      no: t.keep,
      action: `${buildPath(store)}/${poster.id}/remove`,
      back: `${buildPath(store)}/${poster.id}`,
    });
  }

  @Post(':id/remove')
  @TakesForm()
  @RequiresOperation('deletePoster')
  async remove(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.commands.execute(new DeletePoster(context, parsePathId(path)));
    await this.pages.redirect(reply, `${buildPath(store)}?done=removed`);
  }

  /** Shows the form again with what was wrong. @throws what is no refusal */
  private async sendRejected(
    request: FastifyRequest,
    reply: FastifyReply,
    store: EnteredStore,
    state: { values: PosterForm; listed?: ListedPoster },
    error: unknown,
  ): Promise<void> {
    const { posterConsole: t, words } = this.pages.localize(request).t;
    // The card may have been chosen by an address that somebody has edited.
    const isOfCard = error instanceof NotFoundError && state.listed === undefined;
    if (!isOfCard && !(error instanceof RejectedError)) throw error;
    const fields = error instanceof InvalidFieldsError ? error.errors : {};
    const isFull = error instanceof RejectedError && error.code === 'limit_reached';
    await this.sendForm(request, reply, store, {
      ...state,
      errors: {
        fields: isOfCard ? { card_id: [''] } : isFull ? {} : fields,
        text: isFull ? t.limitReached : words.rejected,
      },
    });
  }

  private async sendForm(
    request: FastifyRequest,
    reply: FastifyReply,
    store: EnteredStore,
    state: Partial<PosterFormState> & Pick<PosterFormState, 'values'>,
  ): Promise<void> {
    const { listed = null, errors = null, done = '', values } = state;
    const localization = this.pages.localize(request);
    const cards = listed ? [] : await this.lists.listCards(store.id);
    const data = createPosterFormView(
      { listed, errors, done, values },
      {
        base: buildPath(store),
        cards,
        receipt: this.forms.createReceipt(),
        localization,
        toUrls: (one) => this.toUrls(one),
      },
    );
    await this.pages.send(request, reply, {
      view: posterFormView,
      title: data.title,
      data,
      status: errors ? 422 : 200,
    });
  }

  private toUrls({ poster }: ListedPoster): PosterUrls {
    const { signup_url: signup, display_url: display } = this.posters.toJson(poster);
    return { signup, display };
  }
}

function buildPath({ id }: EnteredStore): string {
  return `/app/stores/${id}/posters`;
}
