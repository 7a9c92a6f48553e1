import { Body, Controller, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Form } from '#platform/http/body-kinds.js';
import { GetPage, PostRepeatableForm } from '#web/pages/current-user.js';
import { loadView } from '#web/pages/view.js';
import { type PageResult, redirectTo } from '#web/pages/page-results.js';
import { CounterLocations } from './counter-locations.service.js';
import { readId } from './counter-operation.js';
import { AtCounter, CounterPages } from './counter-pages.service.js';
import type { CounterVisit } from './counter-visit.js';

type LocationView = {
  path: string;
  choices: { value: string; text: string }[];
  chosenId: string;
};

const locationView = loadView<LocationView>(import.meta.url, './views/location.eta');

/** Per IP address, which all counters of a shop share. */
const PER_ADDRESS = 120;

/** Lets staff say at which location the phone is, for the numbers of that location. */
@Controller('counter/:account_id/location')
export class CounterLocationController {
  constructor(
    private readonly counterLocations: CounterLocations,
    private readonly counterPages: CounterPages,
  ) {}

  @GetPage('counter.use')
  async show(
    @AtCounter() { context, path, localization: { t } }: CounterVisit,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const { current } = await this.counterLocations.find(request, context.accountId);
    const locations = await this.counterLocations.list(context.accountId);
    return this.counterPages.show(request, {
      title: t.counter.location.title,
      view: locationView,
      data: {
        path,
        choices: [
          ...locations.map(({ id, name }) => ({ value: String(id), text: name })),
          { value: '0', text: t.numbers.noLocation },
        ],
        chosenId: String(current?.id ?? 0),
      },
      back: path,
    });
  }

  @PostRepeatableForm('counter.use', '', PER_ADDRESS)
  choose(
    @AtCounter() { context: { accountId }, path }: CounterVisit,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): PageResult {
    const locationId = readId(form['location_id']);
    this.counterLocations.choose(request, reply, { accountId, locationId });
    return redirectTo(path);
  }
}
