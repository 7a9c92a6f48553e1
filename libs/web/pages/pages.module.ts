import { Global, Module } from '@nestjs/common';
import { AssetsController } from './assets.controller.js';
import { ConsoleGuard } from './console-guard.service.js';
import { ElementsController } from './elements.controller.js';
import { SecurityTxtController } from './security-txt.controller.js';
import { StartPageController } from './start-page.controller.js';
import { StoreTimes } from './store-times.service.js';
import { FormCommands } from './form-commands.service.js';
import { KeptForms } from './kept-forms.service.js';

/** Provides what every page needs. Global, because many libs have pages. */
@Global()
@Module({
  controllers: [AssetsController, ElementsController, SecurityTxtController, StartPageController],
  providers: [ConsoleGuard, FormCommands, KeptForms, StoreTimes],
  exports: [FormCommands, KeptForms, StoreTimes],
})
export class PagesModule {}
