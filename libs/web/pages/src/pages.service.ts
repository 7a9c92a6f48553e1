import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import type { Localization } from '#translations/translations.js';
import { createConsoleFrame } from './console-frame.js';
import type { ConsoleRequest } from './current-user.js';
import { localizeRequest } from './localize.js';
import { renderPage, getRootPath, sendRenderedPage, type Colors, type PageExtras } from './page.js';
import { createPlainFrame, loadView, type View } from './view.js';

export type ConsolePage<D extends object> = PageExtras & {
  view: View<D>;
  title: string;
  data: D;
  status?: number;
  /** Of a page in one language only; the default is that of the browser, for which its texts are. */
  lang?: string;
};

export type PublicPage<D extends object> = ConsolePage<D> & {
  /** A BCP 47 tag. */
  lang: string;
  /** The colours of the store; the default is Inkpad's. */
  colors?: Colors;
  /** The colours of a card on the page. */
  cardColors?: Colors;
};

/** Describes a question before an action that cannot be undone. Paths are from the root of the service. */
export type Confirmation = {
  question: string;
  /** The name of the affected person or thing. */
  about: string;
  /** The consequences. */
  text: string;
  /** The label of the button that does it, and of the link that does not. */
  yes: string;
  no: string;
  /** The path that the form is sent to. */
  action: string;
  fields?: Readonly<Record<string, string>>;
  /** The errors of the password that it asks for; null: it asks for none. */
  passwordErrors?: readonly string[] | null;
  back: string;
};

const confirmView = loadView<Required<Confirmation>>(import.meta.url, './views/confirm.eta');

/** Sends pages in one layout and one style, each with the narrowest content security policy. */
@Injectable()
export class Pages {
  private readonly root: string;

  constructor(config: Config) {
    this.root = getRootPath(config);
  }

  /** Returns the texts of the console in the language that the browser prefers. */
  localize(request: FastifyRequest): Localization {
    return localizeRequest(request);
  }

  /** Sends a page of the console in the browser's language, with the store and the menu of the request. */
  async send<D extends object>(
    request: FastifyRequest,
    reply: FastifyReply,
    { status = 200, lang, ...page }: ConsolePage<D>,
  ): Promise<void> {
    const { frame, at } = createConsoleFrame(this.root, request as ConsoleRequest, lang);
    await sendRenderedPage(
      reply.status(status),
      renderPage({ kind: 'console', frame, at, ...page }),
    );
  }

  /** Asks for confirmation on a page of its own, which works without a script. The focus is on the harmless link. */
  async sendConfirmation(
    request: FastifyRequest,
    reply: FastifyReply,
    confirmation: Confirmation,
  ): Promise<void> {
    const data = { fields: {}, passwordErrors: null, ...confirmation };
    await this.send(request, reply, {
      view: confirmView,
      title: confirmation.question,
      data,
      status: data.passwordErrors?.length ? 422 : 200,
      width: 'form',
    });
  }

  /** Sends a page that needs no session, in the language and colours of a store. */
  async sendPublic<D extends object>(
    reply: FastifyReply,
    { status = 200, lang, ...page }: PublicPage<D>,
  ): Promise<void> {
    const frame = createPlainFrame(this.root, lang);
    await sendRenderedPage(reply.status(status), renderPage({ kind: 'public', frame, ...page }));
  }

  /** Redirects after a form. @param path from the root of the service, such as `/app/account?done=saved` */
  async redirect(reply: FastifyReply, path: string): Promise<void> {
    await reply.header('cache-control', 'no-store').redirect(this.root + path, 303);
  }
}
