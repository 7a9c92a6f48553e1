import { Controller, Param, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { Outbox } from '#outbound/messages/outbox.service.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { loadView } from '#web/pages/view.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { type PageResult, showPage, redirectTo } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { buildMessagesPath, createMessageTabs } from './message-tabs.js';
import { explainState, toOutboxLine, type MessageData, type OutboxData } from './outbox-page.js';

const listView = loadView<OutboxData>(import.meta.url, './views/outbox.eta');
const messageView = loadView<MessageData>(import.meta.url, './views/message.eta');

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Shows the messages to the customers of a store. */
@Controller('app/stores/:account_id/messages/links')
export class OutboxController {
  constructor(
    private readonly commands: FormCommands,
    private readonly outbox: Outbox,
    private readonly times: StoreTimes,
  ) {}

  @GetPage('outbox.read')
  async list(
    @CurrentStore() store: EnteredStore,
    @Query('after') after: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { entries, older } = await this.outbox.list(store.id, findMessageId(after));
    const base = buildLinksPath(store);
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    return showPage({
      view: listView,
      title: localization.t.outbox.heading,
      data: {
        lines: entries.map((entry) => toOutboxLine(entry, base, minute, localization)),
        older: older === null ? null : `${base}?after=${older}`,
        tabs: createMessageTabs(store, 'links', localization.t),
        holds: entries.some(({ state }) => state === 'held'),
      },
    });
  }

  @GetPage('outbox.read', ':message_id')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('message_id') path: string,
    @Query('done') done: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { entry, preview, canBeSent } = await this.outbox.find(store.id, parseMessageId(path));
    const base = buildLinksPath(store);
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const line = toOutboxLine(entry, base, minute, localization);
    return showPage({
      view: messageView,
      title: localization.t.outbox.title({ customer: line.recipient }),
      breadcrumb: { path: base, text: localization.t.outbox.heading },
      width: 'form',
      data: {
        ...line,
        explanation: explainState(entry, minute, localization),
        providerId: entry.providerId,
        preview,
        canBeSent,
        send: `${base}/${entry.id}/send`,
        flash: findFlashMessage(done, { sent: localization.t.outbox.onItsWay }),
      },
    });
  }

  @PostForm('outbox.send', ':message_id/send')
  async send(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param('message_id') path: string,
  ): Promise<PageResult> {
    const id = parseMessageId(path);
    const isSent = await this.commands.executeStep(context, 'send', (keyedWriter) =>
      this.outbox.send(keyedWriter, id),
    );
    return redirectTo(`${buildLinksPath(store)}/${id}${isSent ? '?done=sent' : ''}`);
  }
}

function buildLinksPath(store: EnteredStore): string {
  return `${buildMessagesPath(store)}/links`;
}

/** Parses the id of a message. @throws NotFoundError */
function parseMessageId(path: string): string {
  const id = findMessageId(path);
  if (id === null) throw new NotFoundError('Message');
  return id;
}

function findMessageId(value: unknown): string | null {
  return typeof value === 'string' && UUID.test(value) ? value : null;
}
