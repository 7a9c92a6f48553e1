import { Controller, Param } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { parsePathId } from '#platform/http/path.js';
import type { Localization } from '#translations/translations.js';
import { ArchiveCard, UnarchiveCard } from '#loyalty/cards/card.commands.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { askToConfirm, type PageResult, redirectTo } from '#web/pages/page-results.js';
import { CardDesigns } from './card-designs.service.js';

/** Serves the questions before a card is archived, or taken out of the archive. */
@Controller('app/stores/:account_id/cards')
export class CardArchiveController {
  constructor(
    private readonly commands: FormCommands,
    private readonly designs: CardDesigns,
  ) {}

  @GetPage('archiveCard', ':id/archive')
  async askToArchive(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { card } = await this.designs.get(store.id, parsePathId(path));
    const { t } = localization;
    return askToConfirm({
      question: t.cardPages.archiveAsk,
      about: card.name,
      text: t.cardPages.archiveText,
      yes: t.cardPages.archiveYes,
      no: t.cardPages.archiveNo,
      back: `${buildPath(store)}/${card.id}`,
    });
  }

  @PostForm('archiveCard', ':id/archive')
  async archive(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
  ): Promise<PageResult> {
    await this.commands.execute(new ArchiveCard(context, parsePathId(path)));
    return redirectTo(`${buildPath(store)}?done=archived`);
  }

  @GetPage('unarchiveCard', ':id/unarchive')
  async askToUnarchive(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { card } = await this.designs.get(store.id, parsePathId(path));
    const { t } = localization;
    return askToConfirm({
      question: t.cardPages.unarchiveAsk,
      about: card.name,
      text: t.cardPages.unarchiveText,
      yes: t.cardPages.unarchiveYes,
      no: t.cardPages.unarchiveNo,
      back: `${buildPath(store)}/${card.id}`,
    });
  }

  @PostForm('unarchiveCard', ':id/unarchive')
  async unarchive(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
  ): Promise<PageResult> {
    await this.commands.execute(new UnarchiveCard(context, parsePathId(path)));
    return redirectTo(`${buildPath(store)}?done=unarchived`);
  }
}

function buildPath({ id }: EnteredStore): string {
  return `/app/stores/${id}/cards`;
}
